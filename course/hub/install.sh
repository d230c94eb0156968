#!/bin/sh
# Install the course into the environment of a hub's users: the image's, or that of The Littlest
# JupyterHub. Usage: install.sh PYTHON WHEEL CONSTRAINTS
set -eu
if [ $# -ne 3 ]; then
    echo "install.sh takes three words, PYTHON WHEEL CONSTRAINTS, and got $#: where *.whl stands for" \
        "several wheels, empty that folder on the hub first, and copy one wheel there" >&2
    exit 2
fi
python=$1 wheel=$2 constraints=$3
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)

# torch without CUDA, a tenth of the size; one that is there is kept
if ! "$python" -c "import torch" 2>/dev/null; then
    "$python" -m pip install --no-cache-dir uv
    "$python" -m uv pip install --python "$python" --no-cache --torch-backend=cpu \
        --constraint "$constraints" torch
fi
"$python" -m pip install --no-cache-dir --constraint "$constraints" \
    "$wheel[lab,grade]" "jupyterhub>=5,<6"
# pip takes a wheel of the same version for installed, though the clone it was made from has changed
"$python" -m pip install --no-cache-dir --no-deps --force-reinstall "$wheel"

# nbgrader's exchange for everybody; Formgrader for the service that runs it, and for no student
prefix=$("$python" -c "import sys; print(sys.prefix)")
mkdir -p "$prefix/etc/jupyter"
cp "$here/nbgrader_config.py" "$prefix/etc/jupyter/nbgrader_config.py"
"$python" -m jupyter_server.extension.serverextension disable --sys-prefix nbgrader.server_extensions.formgrader
"$python" -m jupyter_server.extension.serverextension disable --sys-prefix nbgrader.server_extensions.course_list
"$python" -m jupyterlab.labextensions disable --level=sys_prefix @jupyter/nbgrader:formgrader
"$python" -m jupyterlab.labextensions disable --level=sys_prefix @jupyter/nbgrader:course-list

#!/usr/bin/env bash
# Gradescope runs this as root, once, when it builds the image.
set -euo pipefail

source=${RLCOURSE_SOURCE:-/autograder/source}
home=${RLCOURSE_HOME_IN_IMAGE:-/opt/rlcourse}

# The archive holds the secret from which cases are drawn, and the wheel with the right answers.
chmod -R go= "$source"

if [ ! -x "$home/environment/bin/python" ]; then
    # Python 3.11 or newer, which not every image of Gradescope's has
    python=
    apt-get update
    for version in 3.13 3.12 3.11; do
        if apt-cache show "python$version-venv" >/dev/null 2>&1; then
            apt-get install -y "python$version" "python$version-venv"
            python=python$version
            break
        fi
    done
    if [ -z "$python" ]; then
        echo "rlcourse: this image has no Python 3.11 or newer: choose Ubuntu 22.04 or newer" >&2
        exit 1
    fi
    mkdir -p "$home"
    "$python" -m venv "$home/environment"
fi
pip() { "$home/environment/bin/python" -m pip install --quiet --constraint "$source/constraints.txt" "$@"; }
if ! "$home/environment/bin/python" -c "import rlcourse" 2>/dev/null; then
    # torch without CUDA: a fraction of the image. uv knows where that build is.
    "$home/environment/bin/python" -m pip install --quiet uv
    torch=$(grep -i '^torch==' "$source/constraints.txt")
    "$home/environment/bin/python" -m uv pip install --quiet \
        --python "$home/environment/bin/python" --torch-backend=cpu "$torch"
    wheel=$(ls "$source"/rlcourse-*.whl)
    pip "rlcourse[grade] @ file://$wheel"
fi
"$home/environment/bin/python" -m rlcourse.grading.gradescope prepare "$source" "$home"

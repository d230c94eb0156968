"""The Hugging Face hub is asked once, since its clients try for a minute where there is none."""

from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode
from huggingface_hub import try_to_load_from_cache as cached
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from rlcourse.errors import first_line

SECONDS = 10.0  # for the first answer


def ask_once(name: str, file: str, repo_type: str | None = None) -> None:
    """Raise ``LocalEntryNotFoundError`` where the hub does not answer about a file of repository
    ``name``. What is on this machine already is not asked for, and other answers are left to those
    who read them next."""
    if isinstance(cached(name, file, repo_type=repo_type), str) or is_offline_mode():
        return
    try:
        get_hf_file_metadata(hf_hub_url(name, file, repo_type=repo_type), timeout=SECONDS)
    except (HfHubHTTPError, ValueError):
        return  # it did answer
    except Exception as error:  # of the network: which kinds there are differs by version
        raise LocalEntryNotFoundError(f"the hub does not answer ({first_line(error)})") from error

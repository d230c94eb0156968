"""Ask the Hugging Face hub once, since its clients retry for a minute if it cannot be reached."""

from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode
from huggingface_hub import try_to_load_from_cache as cached
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from rlcourse.errors import first_line

SECONDS = 10.0  # for the first answer


def ask_once(name: str, file: str, repo_type: str | None = None) -> None:
    """Raise ``LocalEntryNotFoundError`` if the hub does not answer about a file of repository
    ``name``. It is not asked about files that are on this machine already, and any answer, even an
    error, is left to the caller that loads the file next."""
    if isinstance(cached(name, file, repo_type=repo_type), str) or is_offline_mode():
        return
    try:
        get_hf_file_metadata(hf_hub_url(name, file, repo_type=repo_type), timeout=SECONDS)
    except (HfHubHTTPError, ValueError):
        return  # it did answer
    except Exception as error:  # of the network: their types differ between versions
        raise LocalEntryNotFoundError(f"the hub does not answer ({first_line(error)})") from error

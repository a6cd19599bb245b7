"""Put a model on the Hugging Face Hub, with its card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from neurise.extras import need
from neurise.hub.address import parsed
from neurise.hub.card import Card
from neurise.hub.download import first_line, status_of, unreachable


def uploaded(save: Callable[[Path], None], card: Card, repository: str, **options: Any) -> str:
    """Create the repository if it is not there, put the files of a model into it as one commit, and return its address.

    ``save(folder)`` writes the files. The options are those of ``ModelHubMixin.push_to_hub``.
    """
    hub = need("huggingface_hub", "hub")
    where = parsed(f"hf://{repository}").repository
    errors = need("huggingface_hub.errors", "hub")
    try:
        return str(_mixin(hub)(save, card).push_to_hub(where, **options))
    except unreachable(errors) as error:
        status = status_of(error)
        if status in (401, 403):
            raise PermissionError(
                f"{where}: the hub does not let you write there; sign in with: hf auth login, or pass token=, and name a "
                "repository of your own"
            ) from error
        if status:
            raise OSError(f"{where}: the hub answered with an error: {first_line(error)}") from error
        raise OSError(f"{where}: the hub cannot be reached ({first_line(error)}); nothing was put there") from error
    except RuntimeError as error:  # the package's word for a file that did not arrive
        cause = error.__cause__ or error
        raise OSError(
            f"{where}: {first_line(error)} ({first_line(cause)}); nothing was changed there, try again"
        ) from error


def _mixin(hub: Any) -> Any:
    """Return a class for the hub's own interface; it is made here because the package is imported only where it is used."""

    class Hosted(hub.ModelHubMixin):  # type: ignore[misc]
        """The files of a model and its card, as ``ModelHubMixin`` asks for them."""

        def __init__(self, save: Callable[[Path], None], card: Card) -> None:
            self.save, self.card = save, card

        def _save_pretrained(self, save_directory: Path) -> None:
            self.save(save_directory)

        def generate_model_card(self, *args: Any, **kwargs: Any) -> Any:
            return hub.ModelCard(str(self.card))

    return Hosted

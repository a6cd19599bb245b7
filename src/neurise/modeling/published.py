"""Publish a model: its card, and the Hugging Face Hub."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurise._version import __version__
from neurise.modeling.estimator import Estimator, plain
from neurise.modeling.summary import Summary, readable

if TYPE_CHECKING:
    from neurise.hub.card import Card


class Published(Estimator):
    """An estimator that can be saved and sum itself up, and so can be published."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Write the model to a folder."""

    @abstractmethod
    def summary(self) -> Summary:
        """Summarise the data, the choices and the fit."""

    @abstractmethod
    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters as they were fitted."""

    def card(
        self, evaluation: Any = None, *, title: str = "", data: str = "", licence: str = "", source: str = ""
    ) -> Card:
        """Describe the model for others: data, settings, measurements with their floors, and licence. ``str(card)`` is Markdown.

        ``evaluation`` is what :func:`neurise.evaluate` returned. ``data`` says where the rows come from, in words. ``licence``
        is an identifier such as "mit". ``source`` is where the model will be loaded from.

        >>> import neurise
        >>> model = neurise.Independent().fit([[0, 1], [1, 0]] * 50)
        >>> str(model.card(title="Two coins", licence="cc-by-4.0")).splitlines()[1:3]
        ['library_name: neurise', 'license: cc-by-4.0']
        """
        from neurise.hub.card import Card

        facts = {name: readable(fact) for name, fact in self.summary().items()}
        usual = {name: plain(value) for name, value in self.leaves().items()}
        settings = {name: plain(value) for name, value in self._saved_params().items()}
        return Card(
            model=facts.pop("model"),
            kind=type(self).__name__,
            version=__version__,
            facts=facts,
            settings={name: value for name, value in settings.items() if value != usual.get(name)},
            title=title,
            data=data,
            licence=licence.lower(),
            evaluation={} if evaluation is None else evaluation.to_dict(),
            **({"source": source} if source else {}),
        )

    def save_pretrained(self, path: str | Path, evaluation: Any = None, **told: str) -> None:
        """Write the model to a folder as :meth:`save` does, and a card beside it (``README.md``).

        The arguments are those of :meth:`card`.
        """
        from neurise.files import write_text
        from neurise.hub.card import README

        text = str(self.card(evaluation, **told))
        self.save(path)
        write_text(Path(path) / README, text)

    def push_to_hub(
        self,
        repository: str,
        evaluation: Any = None,
        *,
        private: bool | None = None,
        token: str | None = None,
        branch: str | None = None,
        commit_message: str = "Put a model of neurise here",
        **told: str,
    ) -> str:
        """Put the model and its card on the Hugging Face Hub as ``owner/name``, and return the address of the commit.

        The repository is created if it is not there. Everyone can read it unless ``private`` is True. The token is that of
        ``hf auth login`` unless another is given. ``evaluation`` and the other arguments are those of :meth:`card`. It needs
        the extra ``hub``.

        ``model.push_to_hub("me/annealer", neurise.evaluate(model, X), licence="mit")`` is read back by
        ``neurise.load("hf://me/annealer")``.
        """
        from neurise.hub.upload import uploaded

        card = self.card(evaluation, **{"source": f"hf://{repository}", **told})
        options = {"private": private, "token": token, "branch": branch, "commit_message": commit_message}
        return uploaded(self.save, card, repository, **options)

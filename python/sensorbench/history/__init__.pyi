from .collecting import collect
from .series import Selection, series_of
from .store import DEFAULT_STORE, Added, HistoryStore

__all__ = ["DEFAULT_STORE", "Added", "HistoryStore", "Selection", "collect", "series_of"]

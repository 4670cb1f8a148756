"""A server of an index with a page to search, and a client. The extra ``serve`` installs both."""

from okforest._utils.errors import install_extra

try:
    from okforest.retrieval.web.client import RemoteError, RemoteIndex
    from okforest.retrieval.web.guards import ServerSettings
    from okforest.retrieval.web.server import create_app, serve
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"okforest.retrieval.web needs {error.name}, which is not installed: "
        f"{install_extra('serve')}"
    ) from error

__all__ = ["RemoteError", "RemoteIndex", "ServerSettings", "create_app", "serve"]

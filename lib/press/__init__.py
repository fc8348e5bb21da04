"""The press: runs the notebooks and prints the book.

It knows chapters only through their notebooks and ``book/papers.yml``; notebooks never import it.
"""
from .definitions import definitions

__all__ = ["definitions"]

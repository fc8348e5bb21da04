"""What the notebooks of Paperbook import: claims that can fail, figures for every theme, sliders without a kernel."""
from . import plots
from .chapter import Chapter
from .explore import explore
from .plots import show
from .training import progress

__all__ = ["Chapter", "explore", "plots", "progress", "show"]
__version__ = "0.1.0"

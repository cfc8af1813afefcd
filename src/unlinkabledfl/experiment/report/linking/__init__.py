"""Who could be linked, for people: one page of the document of `attack`, or of `reproduce linking`."""

from unlinkabledfl.experiment.report.linking.document import linking_html

__all__ = ["linking_html"]

"""`reproduce theory`: the theorems' quantities beside the published numbers, as a document, tables and a page."""

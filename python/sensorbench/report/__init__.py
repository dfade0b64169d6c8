"""Reports: one self-contained HTML file, and its charts as SVG and PNG."""

"""What `import sensorbench` hands out: results as typed objects, and functions that measure and compare.

Other parts of the package are its own. What stands in `sensorbench/__init__.pyi` is the public surface, which is versioned.
"""

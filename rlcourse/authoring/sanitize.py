"""A step of nbgrader's autograde that belongs to the course; see ``course/nbgrader_config.py``."""

from nbgrader.preprocessors import NbGraderPreprocessor


class DropGradedTags(NbGraderPreprocessor):
    """Graded cells lose their tags: ``skip-execution`` on a check would earn its points unrun."""

    def preprocess_cell(self, cell, resources, cell_index):
        if "nbgrader" in cell.metadata:
            cell.metadata.pop("tags", None)
        return cell, resources

#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& image_classification_folders();

}  // namespace stretto::interchange

#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& text_classification_folders();

}  // namespace stretto::interchange

#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& language_model_folders();

}  // namespace stretto::interchange

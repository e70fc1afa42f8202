#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& translation_folders();

}  // namespace stretto::interchange

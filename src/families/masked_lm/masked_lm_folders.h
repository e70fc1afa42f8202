#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& masked_lm_folders();

}  // namespace stretto::interchange

#pragma once

namespace stretto::interchange {

class ModelFolders;

/// FamilySpec::folders.
const ModelFolders& question_answering_folders();

}  // namespace stretto::interchange

#include "interchange/import_folder.h"

#include "interchange/import_model.h"
#include "interchange/import_seq2seq.h"

namespace stretto::interchange {

ImportedRun import_folder(const std::filesystem::path& folder, const ImportOptions& options) {
  // A reader's result is cut to what every kind of model has.
  if (is_seq2seq_folder(folder)) return import_seq2seq(folder, options);
  return import_model(folder, options);
}

}  // namespace stretto::interchange

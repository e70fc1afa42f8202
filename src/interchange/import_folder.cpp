#include "interchange/import_folder.h"

#include "interchange/config_reader.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {

ImportedRun import_folder(const std::filesystem::path& folder, const ImportOptions& options) {
  return reader_of(read_folder_config(folder), options).read(folder, options);
}

}  // namespace stretto::interchange

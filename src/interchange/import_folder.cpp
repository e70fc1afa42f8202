#include "interchange/import_folder.h"

#include "interchange/config_reader.h"
#include "interchange/model_folders.h"

namespace stretto::interchange {

ImportedRun import_folder(const std::filesystem::path& folder, const ImportOptions& options) {
  if (std::filesystem::is_regular_file(folder)) return reader_of_file(folder).read(folder, options);
  return reader_of(read_folder_config(folder), options).read(folder, options);
}

}  // namespace stretto::interchange

#include "text/ngram/open_ngram_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "text/ngram/arpa.h"
#include "text/ngram/kenlm_file.h"
#include "text/ngram/probing_file.h"
#include "text/ngram/probing_model.h"
#include "text/ngram/trie_model.h"

namespace stretto::text {
namespace {

namespace fs = std::filesystem;

constexpr int kCacheVersion = 1;

std::unique_ptr<NgramModel> open_kenlm(ModelBytes bytes, const std::string& place) {
  switch (read_kenlm_head(bytes.view(), place).kind) {
    case KenlmKind::kProbing:
      return std::make_unique<ProbingModel>(std::move(bytes), place);
    case KenlmKind::kRestProbing:
      throw Error(ExitCode::kBadData,
                  place + ": a file of KenLM with rest costs, whose scores of prefixes are others",
                  "make it with `build_binary probing` or `build_binary trie`");
    default:
      return std::make_unique<TrieModel>(std::move(bytes), place);
  }
}

/// The file of the cache for a text as it is now: named after its path, and after what changes with
/// its content: size, time, first and last bytes. Reading all would take longer than opening the
/// model.
struct CachedForm {
  fs::path folder;
  std::string of_path;  ///< begins the names of all forms of this path
  std::string of_content;
  fs::path file() const { return folder / (of_path + of_content + ".kenlm"); }
};

std::optional<CachedForm> cached_form(const fs::path& path, std::string_view bytes,
                                      const fs::path& cache_dir) {
  std::error_code problem;
  const fs::path whole = fs::weakly_canonical(path, problem);
  struct stat status {};
  if (problem || stat(whole.c_str(), &status) != 0) return std::nullopt;
  CachedForm form;
  form.folder = (cache_dir.empty() ? user_cache_dir() : cache_dir) / "ngrams";
  form.of_path = "ngram-" + hex64(xxh3_64(whole.string())) + "-";
  constexpr size_t kEdge = 4096;
  const size_t edge = std::min(bytes.size(), kEdge);
  std::string facts(bytes.substr(0, edge));
  facts += bytes.substr(bytes.size() - edge);
  for (const int64_t fact : {int64_t{status.st_size}, int64_t{status.st_mtim.tv_sec},
                             int64_t{status.st_mtim.tv_nsec}, int64_t{kCacheVersion}}) {
    facts += " " + std::to_string(fact);
  }
  form.of_content = hex64(xxh3_64(facts));
  return form;
}

/// A form that is there and whole, or nothing.
std::unique_ptr<NgramModel> open_cached(const CachedForm& form) {
  std::error_code problem;
  if (!fs::is_regular_file(form.file(), problem)) return nullptr;
  try {
    return open_kenlm(ModelBytes(MappedFile(form.file())), form.file().string());
  } catch (const Error& error) {
    log::warn(std::string(error.what()) + "; it is made again");
    return nullptr;
  }
}

/// Forms of what the text was before. One that another process has mapped lives on until it ends.
void remove_older_forms(const CachedForm& form) {
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(form.folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(form.of_path) && name.ends_with(".kenlm") && entry.path() != form.file()) {
      fs::remove(entry.path(), problem);
    }
  }
}

ProbingFile read_text(const fs::path& path, std::string_view bytes) {
  const bool is_gzip = bytes.starts_with("\x1f\x8b");
  const std::unique_ptr<ArpaLines> lines = is_gzip ? arpa_file_lines(path) : arpa_lines(bytes);
  return ProbingFile(*lines, path.string());
}

/// Makes the form, unless another process has just made it.
std::unique_ptr<NgramModel> open_text(const fs::path& path, std::string_view bytes,
                                      const CachedForm& form) {
  make_directories(form.folder);
  const FileLock lock = FileLock::wait(form.folder / (form.of_path + "lock"));
  if (auto model = open_cached(form)) return model;
  const ProbingFile made = read_text(path, bytes);
  AtomicFile file(form.file());
  made.write([&](std::string_view part) { file.write(part); });
  file.publish();
  remove_older_forms(form);
  return open_kenlm(ModelBytes(MappedFile(form.file())), form.file().string());
}

}  // namespace

std::unique_ptr<NgramModel> open_ngram_model(const fs::path& path, const fs::path& cache_dir) {
  MappedFile file(path);
  if (is_kenlm(file.bytes())) return open_kenlm(ModelBytes(std::move(file)), path.string());
  if (file.size() == 0)
    throw Error(ExitCode::kBadData, path.string() + ": the language model is an empty file",
                "decode.lm takes ARPA text, plain or gzip, or a binary file of KenLM");
  const std::optional<CachedForm> form = cached_form(path, file.bytes(), cache_dir);
  if (form) {
    if (auto model = open_cached(*form)) return model;
    try {
      return open_text(path, file.bytes(), *form);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kIo) throw;
      log::warn(std::string(error.what()) + "; the language model is read anew by each start");
    }
  }
  return open_kenlm(ModelBytes(read_text(path, file.bytes()).bytes()), path.string());
}

std::unique_ptr<NgramModel> read_ngram_model(std::string bytes, const std::string& place) {
  if (is_kenlm(bytes)) return open_kenlm(ModelBytes(std::move(bytes)), place);
  const std::unique_ptr<ArpaLines> lines = arpa_lines(bytes);
  return open_kenlm(ModelBytes(ProbingFile(*lines, place).bytes()), place);
}

}  // namespace stretto::text

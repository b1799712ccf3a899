#include "krigtune/core/files.h"
#include "krigtune/journal/journal.h"
#include "replayed_study.h"

namespace krigtune {

std::vector<Trial> read_journal(const std::filesystem::path& file) {
  ReplayedStudy study(file.string());
  study.apply(read_text(file));  // a torn last line is one that is being written
  return study.trials();
}

}  // namespace krigtune

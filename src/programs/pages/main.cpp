// krigtune-pages FOLDER writes the manual pages of all programs, for those who make a package.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "core/files.h"
#include "programs/bench/options.h"
#include "programs/krigtune/command_line.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: krigtune-pages FOLDER\n", stderr);
    return 2;
  }
  try {
    std::vector<krigtune::manual::Page> pages = krigtune::cli::manual_pages();
    pages.push_back(krigtune::bench::manual_page());
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    for (const krigtune::manual::Page& page : pages) {
      krigtune::write_atomically(folder / (page.name + ".1"), to_roff(page, "krigtune " KRIGTUNE_VERSION));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "krigtune-pages: %s\n", error.what());
    return 3;
  }
  return 0;
}

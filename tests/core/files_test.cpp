#include "core/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace krigtune::files_test {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "krigtune_files_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(directory_), fs::directory_iterator()); }

  fs::path directory_;
};

TEST_F(Files, ComeBackAsTheyWereWritten) {
  const std::string text("zero \0 inside\r\nand an end without a break", 40);
  write_atomically(directory_ / "a", text);
  EXPECT_EQ(read_text(directory_ / "a"), text);
  write_atomically(directory_ / "a", "");
  EXPECT_EQ(read_text(directory_ / "a"), "");
  EXPECT_EQ(entries(), 1) << "no temporary file stays behind";
}

TEST_F(Files, AreReplacedNeverRewritten) {
  const fs::path path = directory_ / "a";
  write_atomically(path, "old text");
  std::ifstream reader(path);  // opened before: it must go on seeing the old file, whole
  write_atomically(path, "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old text");
  EXPECT_EQ(read_text(path), "new");
}

TEST_F(Files, ThatCannotBeReplacedStayAsTheyWere) {
  fs::create_directories(directory_ / "taken" / "inside");  // a directory that is not empty cannot be renamed over
  EXPECT_THROW(write_atomically(directory_ / "taken", "text"), EnvironmentError);
  EXPECT_TRUE(fs::exists(directory_ / "taken" / "inside"));
  EXPECT_EQ(entries(), 1) << "no temporary file stays behind";
  EXPECT_THROW(write_atomically(directory_ / "nowhere" / "a", "text"), EnvironmentError);
}

TEST_F(Files, ThatAreOnlyInformationEndNothing) {
  fs::create_directories(directory_ / "taken" / "inside");
  EXPECT_FALSE(write_if_possible(directory_ / "taken", "text"));
  EXPECT_FALSE(write_if_possible(directory_ / "nowhere" / "a", "text"));
  EXPECT_TRUE(write_if_possible(directory_ / "a", "text"));
  EXPECT_EQ(read_text(directory_ / "a"), "text");
}

TEST_F(Files, ThatCanBeMadeAgainAreReplacedLikeAnyOther) {
  write_derived(directory_ / "a", "old text");
  std::ifstream reader(directory_ / "a");
  write_derived(directory_ / "a", "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old text");
  EXPECT_EQ(read_text(directory_ / "a"), "new");
  EXPECT_EQ(entries(), 1) << "no temporary file stays behind";
  EXPECT_THROW(write_derived(directory_ / "nowhere" / "a", "text"), EnvironmentError);
  EXPECT_NO_THROW(sync_file_system(directory_));
  EXPECT_THROW(sync_file_system(directory_ / "nowhere"), EnvironmentError);
}

TEST_F(Files, ThatAreNotThereAreTheUsersError) {
  EXPECT_THROW(read_text(directory_ / "a"), UserError);
  EXPECT_THROW(read_text(directory_), UserError);
}

TEST_F(Files, DirectoriesAreMadeWithTheirParents) {
  make_writable_directory(directory_ / "x" / "y" / "z");
  make_writable_directory(directory_ / "x" / "y" / "z");
  EXPECT_TRUE(fs::is_directory(directory_ / "x" / "y" / "z"));
  write_atomically(directory_ / "file", "");
  EXPECT_THROW(make_writable_directory(directory_ / "file"), UserError);
  EXPECT_THROW(make_writable_directory(directory_ / "file" / "below"), UserError);
}

}  // namespace krigtune::files_test

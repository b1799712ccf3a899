#include "core/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
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
  EXPECT_EQ(entries(), 1) << "no temporary file stays after";
}

TEST_F(Files, AreReplacedNeverRewritten) {
  const fs::path path = directory_ / "a";
  write_atomically(path, "old text");
  std::ifstream reader(path);  // opened before, so it must still see the whole old file
  write_atomically(path, "new");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old text");
  EXPECT_EQ(read_text(path), "new");
}

TEST_F(Files, ThatCannotBeReplacedStayAsTheyWere) {
  fs::create_directories(directory_ / "taken" /
                         "inside");  // a directory that is not empty cannot be replaced by a rename
  EXPECT_THROW(write_atomically(directory_ / "taken", "text"), EnvironmentError);
  EXPECT_TRUE(fs::exists(directory_ / "taken" / "inside"));
  EXPECT_EQ(entries(), 1) << "no temporary file stays after";
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
  EXPECT_EQ(entries(), 1) << "no temporary file stays after";
  EXPECT_THROW(write_derived(directory_ / "nowhere" / "a", "text"), EnvironmentError);
  EXPECT_NO_THROW(sync_file_system(directory_));
  EXPECT_THROW(sync_file_system(directory_ / "nowhere"), EnvironmentError);
}

TEST_F(Files, ThatAreNotThereAreTheUsersError) {
  EXPECT_THROW(read_text(directory_ / "a"), UserError);
  EXPECT_THROW(read_text(directory_), UserError);
}

TEST_F(Files, ThatAreNoFilesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const auto reason = [](const fs::path& path) -> std::string {
    try {
      read_text(path);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(reason(directory_ / "pipe"), testing::HasSubstr("it is a named pipe; name a file"));
  EXPECT_THAT(reason("/dev/zero"), testing::HasSubstr("it is a device; name a file"));
  EXPECT_THAT(reason(directory_), testing::HasSubstr("it is a directory; name a file"));
  EXPECT_THAT(reason(directory_ / "none"), testing::HasSubstr("No such file or directory; check the path"));
}

TEST_F(Files, AreReadToTheirLimitAndNoFurther) {
  const std::string text(100'001, 'x');
  write_atomically(directory_ / "a", text);
  EXPECT_EQ(read_text(directory_ / "a", text.size()), text);
  EXPECT_THROW(read_text(directory_ / "a", text.size() - 1), UserError);
  std::ofstream(directory_ / "sparse").put('x');
  fs::resize_file(directory_ / "sparse", kMostTextBytes + 1);
  EXPECT_THROW(read_text(directory_ / "sparse"), UserError);
  EXPECT_FALSE(read_text("/proc/self/status").empty()) << "the kernel says that it has 0 bytes";
}

TEST_F(Files, MayBePipesThatThisProcessWasGiven) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_TRUE(write_all(ends[1], "from a pipe"));
  ::close(ends[1]);
  EXPECT_EQ(read_text("/dev/fd/" + std::to_string(ends[0])), "from a pipe");
  ::close(ends[0]);
}

TEST_F(Files, AreReadInPartsWhereTheyAreRegular) {
  write_atomically(directory_ / "a", "0123456789");
  const RegularFile file(directory_ / "a");
  EXPECT_EQ(file.size_bytes(), 10U);
  EXPECT_EQ(file.read(3, 4), "3456");
  EXPECT_EQ(file.read(8, 4), "89");
  EXPECT_EQ(file.read(11, 4), "");
  EXPECT_EQ(RegularFile(directory_).read(0, 4), "");
  EXPECT_FALSE(RegularFile(directory_ / "none").trouble().empty());
}

TEST_F(Files, AreNeverWrittenThroughALink) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    write_atomically(directory_ / "victim", "untouched");
    fs::create_symlink(directory_ / "victim", directory_ / name);
  }
  write_atomically(directory_ / "a", "new");
  write_derived(directory_ / "b", "new");
  write_private(directory_ / "c", "new");
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_FALSE(fs::is_symlink(directory_ / name)) << name;
    EXPECT_EQ(read_text(directory_ / name), "new");
  }
  EXPECT_THROW(append_durably(directory_ / "d", "more"), EnvironmentError);
  EXPECT_LT(open_output(directory_ / "e"), 0);
  EXPECT_EQ(read_text(directory_ / "victim"), "untouched");
}

mode_t permissions(const fs::path& path) {
  struct stat state {};
  return ::stat(path.c_str(), &state) == 0 ? state.st_mode & 0777U : 0U;
}

TEST_F(Files, HaveThePermissionsThatTheUmaskLeaves) {
  const mode_t before = ::umask(002);
  write_atomically(directory_ / "shared", "x");
  write_private(directory_ / "private", "x");
  make_writable_directory(directory_ / "folder");
  ::umask(077);
  write_atomically(directory_ / "closed", "x");
  make_writable_directory(directory_ / "closed folder");
  ::umask(before);
  EXPECT_EQ(permissions(directory_ / "shared"), 0664U);
  EXPECT_EQ(permissions(directory_ / "private"), 0600U);
  EXPECT_EQ(permissions(directory_ / "folder"), 0775U);
  EXPECT_EQ(permissions(directory_ / "closed"), 0600U);
  EXPECT_EQ(permissions(directory_ / "closed folder"), 0700U);
}

TEST_F(Files, KeepThePermissionsThatTheirOwnerGaveThem) {
  write_private(directory_ / "a", "x");
  fs::permissions(directory_ / "a", fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  write_private(directory_ / "a", "y");
  EXPECT_EQ(permissions(directory_ / "a"), 0640U);
}

TEST_F(Files, OfWritersThatWereKilledGoOnceTheyAreOld) {
  const fs::path old = directory_ / "best.json.tmp-0123456789abcdef";
  const fs::path young = directory_ / "best.json.tmp-0123456789abcdee";
  const fs::path users = directory_ / "notes.tmp-of-mine";
  for (const fs::path& path : {old, young, users, directory_ / "session.json"}) write_atomically(path, "x");
  const auto now = fs::last_write_time(directory_ / "session.json");
  fs::last_write_time(old, now - std::chrono::minutes(11));
  fs::last_write_time(users, now - std::chrono::minutes(11));
  fs::last_write_time(young, now - std::chrono::minutes(9));
  remove_old_temporaries(directory_ / "session.json");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "its writer may still be at work";
  EXPECT_TRUE(fs::exists(users));
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

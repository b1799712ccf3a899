// Tests where NVIDIA's libraries are looked for, in folders made for the test, and which GPUs can run compiled code.
#include <gtest/gtest.h>

#include <map>

#include "engine/cuda/runtime/compiled_for.h"
#include "engine/cuda/runtime/library_search.h"
#include "trial/temporary_directory.h"

namespace krigtune::cuda {
namespace {

namespace fs = std::filesystem;

class Machine : public testing::Test {
 protected:
  std::string make(const std::string& folder) {
    fs::create_directories(root_ / folder);
    return (root_ / folder).string();
  }
  LibraryFolders folders() const {
    const Variable variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    return library_folders(variable, root_.path());
  }
  std::vector<std::string> usual() const {
    std::vector<std::string> names;
    for (const fs::path& folder : folders().usual) names.push_back(folder.string());
    return names;
  }
  // Copies a library that can be opened to the folder, under this name.
  void put_library(const std::string& folder, const std::string& name) {
    fs::copy_file(SOME_LIBRARY, fs::path(make(folder)) / name);
  }

  TemporaryDirectory root_;
  std::map<std::string, std::string> variables_;
};

using Names = std::vector<std::string>;

TEST_F(Machine, HasLibrariesInCudasFoldersAndInWheels) {
  EXPECT_EQ(usual(), Names{});
  const std::string cuda = make("usr/local/cuda-13.0/lib64");
  const std::string wheel_12 = make("usr/local/lib/python3.11/dist-packages/nvidia/cublas/lib");
  const std::string nccl = make("usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib");
  const std::string wheel_13 = make("usr/lib/python3.12/site-packages/nvidia/cu13/lib");
  EXPECT_EQ(usual(), (Names{cuda, wheel_12, nccl, wheel_13}));
  fs::create_directory_symlink(root_ / "usr/local/cuda-13.0", root_ / "usr/local/cuda");
  EXPECT_EQ(usual().size(), 4U) << "a folder with two names is tried once";
}

TEST_F(Machine, HasWheelsOfTheUsersPythons) {
  const std::string of_venv = make("venv/lib/python3.12/site-packages/nvidia/nccl/lib");
  const std::string of_conda = make("conda/lib/python3.10/site-packages/nvidia/nccl/lib");
  const std::string on_path = make("opt/python/lib/python3.13/site-packages/nvidia/nccl/lib");
  const std::string at_home = make("home/.local/lib/python3.9/site-packages/nvidia/nccl/lib");
  variables_ = {{"VIRTUAL_ENV", (root_ / "venv").string()},
                {"CONDA_PREFIX", (root_ / "conda").string()},
                {"PATH", "/nowhere::" + make("opt/python/bin")},
                {"HOME", (root_ / "home").string()}};
  EXPECT_EQ(usual(), (Names{of_venv, of_conda, at_home})) << "that folder of PATH has no python3";
  root_.write("opt/python/bin/python3", "");
  EXPECT_EQ(usual(), (Names{of_venv, of_conda, on_path, at_home}));
}

TEST_F(Machine, HasThePythonThatALinkOnPathPointsTo) {
  const std::string wheel = make("opt/python/lib/python3.13/site-packages/nvidia/nccl/lib");
  make("opt/python/bin");
  root_.write("opt/python/bin/python3.13", "");
  variables_["PATH"] = make("links/bin");
  fs::create_symlink(root_ / "opt/python/bin/python3.13", root_ / "links/bin/python3");
  EXPECT_EQ(usual(), Names{wheel});
}

TEST_F(Machine, TriesFoldersThatAreNamedFirst) {
  variables_ = {{kLibraryVariable, make("mine") + ":/nowhere:" + make("other")},
                {"NCCL_ROOT", (root_ / "nccl").string()}};
  const std::string nccl = make("nccl/lib");
  put_library("nccl/lib", "libkrigtune_test.so.2");
  const auto path = [&] { return find_library("NCCL", {"libkrigtune_test.so.2"}, folders()).path; };
  EXPECT_EQ(folders().named.size(), 2U);
  EXPECT_EQ(path(), nccl + "/libkrigtune_test.so.2");
  put_library("other", "libkrigtune_test.so.2");
  EXPECT_EQ(path(), (root_ / "other/libkrigtune_test.so.2").string());
  put_library("mine", "libkrigtune_test.so.1");
  EXPECT_EQ(find_library("NCCL", {"libkrigtune_test.so.1", "libkrigtune_test.so.2"}, folders()).path,
            (root_ / "mine/libkrigtune_test.so.1").string());
}

TEST_F(Machine, SaysWhereItLooked) {
  EXPECT_EQ(find_library("NCCL", {"libkrigtune_test.so.2"}, folders()).missing,
            "NCCL was not found: no libkrigtune_test.so.2 on LD_LIBRARY_PATH, in the system's library folders");
  const std::string cuda = make("usr/local/cuda/lib64");
  const FoundLibrary none = find_library("cuBLASLt", {"libkrigtune_test.so.2", "libkrigtune_test.so.1"}, folders());
  EXPECT_EQ(none.library, nullptr);
  EXPECT_EQ(none.missing,
            "cuBLASLt was not found: no libkrigtune_test.so.2 or libkrigtune_test.so.1 on LD_LIBRARY_PATH, in the "
            "system's library folders, or in " +
                cuda);
}

TEST_F(Machine, SaysWhyALibraryThatIsThereCannotBeOpened) {
  make("usr/local/cuda/lib64");
  const fs::path file = root_.write("usr/local/cuda/lib64/libkrigtune_test.so.2", "no library");
  const std::string missing = find_library("NCCL", {"libkrigtune_test.so.2"}, folders()).missing;
  EXPECT_EQ(missing.find("NCCL cannot be opened: " + file.string() + ": "), 0U) << missing;
}

constexpr const char* kRelease = "80-real,89-real,90a-real,90-virtual,100-real,120-real";

TEST(CompiledFor, RunsOnTheGpusThatNvidiaSays) {
  const auto runs = [](const char* targets, int major, int minor) {
    return why_not_compiled_for(targets, major, minor).empty();
  };
  // A cubin runs on GPUs of the same major version whose minor version is not lower.
  EXPECT_TRUE(runs("80-real", 8, 0));
  EXPECT_TRUE(runs("80-real", 8, 6));
  EXPECT_FALSE(runs("86-real", 8, 0));
  EXPECT_FALSE(runs("80-real", 9, 0));
  EXPECT_FALSE(runs("90-real", 10, 0));
  EXPECT_TRUE(runs("100-real", 10, 3));
  // PTX runs on all GPUs from its version on.
  EXPECT_TRUE(runs("90-virtual", 9, 0));
  EXPECT_TRUE(runs("90-virtual", 12, 1));
  EXPECT_FALSE(runs("90-virtual", 8, 9));
  EXPECT_TRUE(runs("80", 9, 0)) << "without a word, it is both";
  // Code with features of one GPU (a) or of a family (f) runs only there.
  EXPECT_TRUE(runs("90a-real", 9, 0));
  EXPECT_FALSE(runs("90a", 10, 0));
  EXPECT_FALSE(runs("90a-virtual", 10, 0));
  EXPECT_TRUE(runs("100f", 10, 3));
  EXPECT_FALSE(runs("100f-virtual", 12, 0));
  for (const auto& [major, minor] :
       {std::pair{8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}}) {
    EXPECT_TRUE(runs(kRelease, major, minor)) << major << "." << minor;
  }
  EXPECT_TRUE(runs("native", 7, 0)) << "not judged";
}

TEST(CompiledFor, HasHopperCodeOnHopperWith90aOnly) {
  for (const char* targets : {kRelease, "90a-real", "90a", "90-real,90a-virtual"}) {
    EXPECT_TRUE(has_hopper_code(targets, 9, 0)) << targets;
    EXPECT_FALSE(has_hopper_code(targets, 10, 0)) << targets;
    EXPECT_FALSE(has_hopper_code(targets, 8, 0)) << targets;
  }
  for (const char* targets : {"90-real", "90", "100a-real", "native", ""}) {
    EXPECT_FALSE(has_hopper_code(targets, 9, 0)) << targets;
  }
}

TEST(CompiledFor, SaysWhyAGpuCannotRunIt) {
  EXPECT_EQ(why_not_compiled_for(kRelease, 7, 5),
            "compute capability 7.5 is older than what this program was compiled for (8.0, 8.9, 9.0, 10.0, 12.0)");
  EXPECT_EQ(why_not_compiled_for("90-real", 10, 0),
            "compute capability 10.0 is not among those that this program was compiled for (9.0)");
  EXPECT_EQ(compiled_targets(), "90a-real") << "of the emulation, which says that it is 9.0";
}

}  // namespace
}  // namespace krigtune::cuda

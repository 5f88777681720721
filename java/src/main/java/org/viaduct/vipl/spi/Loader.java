/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.viaduct.vipl.VipConstants;
import org.viaduct.vipl.VipLibraryException;

/** Finds the native libraries, checks that they fit, and opens them. */
public final class Loader {
  /** Folders to look in first, separated as in a class path. */
  static final String PATH_PROPERTY = "org.viaduct.library.path";

  /** Which way to call C: ffm or jni. */
  static final String BACKEND_PROPERTY = "org.viaduct.backend";

  private static final String LIBRARY = "libvipl.so.1";
  private static final String INSTALL =
      "Install Viaduct, or name the folder of the library with -D" + PATH_PROPERTY + "=FOLDER";

  private final List<String> tried = new ArrayList<>();

  private Loader() {}

  static NativeCalls load() {
    return new Loader().choose();
  }

  /**
   * Loads a library whose functions the Java Native Interface calls.
   *
   * @param name of the library, without lib and .so
   * @param needs files of libraries: this one needs the first, which needs the next; out of a jar
   *     they are loaded with it unless they are installed
   * @throws VipLibraryException if no place has one that can be loaded
   */
  public static void loadJni(String name, String... needs) {
    String file = System.mapLibraryName(name);
    new Loader().find(file, place -> loadJni(name, file, place), needs);
  }

  private NativeCalls choose() {
    checkLayout("this jar", table());
    String backend = System.getProperty(BACKEND_PROPERTY, Backends.hasFfm() ? "ffm" : "jni");
    switch (backend) {
      case "ffm":
        openLibrary(Backends::openFfm);
        return Backends.ffm();
      case "jni":
        return jni();
      default:
        throw new VipLibraryException(
            BACKEND_PROPERTY + " is \"" + backend + "\"", "Use ffm or jni, or leave it out");
    }
  }

  private NativeCalls jni() {
    String file = System.mapLibraryName(JniCalls.LIBRARY);
    find(file, place -> loadJni(JniCalls.LIBRARY, file, place));
    checkLayout(file, JniCalls.layout());
    tried.clear();
    openLibrary(JniCalls::open);
    return new JniCalls();
  }

  private void openLibrary(Opener opener) {
    find(LIBRARY, place -> opener.open(place, VipConstants.VIPX_VERSION));
  }

  private static String loadJni(String name, String file, String place) {
    try {
      if (place.equals(file)) {
        System.loadLibrary(name);
      } else {
        System.load(place);
      }
      return null;
    } catch (UnsatisfiedLinkError e) {
      return e.getMessage();
    }
  }

  /** Opens libvipl at a place. */
  @FunctionalInterface
  private interface Opener {
    /** Null, or what is wrong with it. */
    String open(String place, long version);
  }

  /** Opens one file. */
  @FunctionalInterface
  private interface Attempt {
    /** Null, or what is wrong with it. */
    String open(String place);
  }

  /** Opens a file in the first place that has it. */
  private void find(String file, Attempt attempt, String... needs) {
    for (String property : new String[] {PATH_PROPERTY, "java.library.path"}) {
      for (String folder : System.getProperty(property, "").split(File.pathSeparator)) {
        if (!folder.isEmpty() && tryFolder(property, Path.of(folder, file), attempt)) {
          return;
        }
      }
    }
    if (note("the system's folders", file, attempt.open(file))) {
      return;
    }
    for (String folder : distributionFolders()) {
      Path path = Path.of(folder, file);
      if (Files.exists(path) && tryFolder("of a distribution", path, attempt)) {
        return;
      }
    }
    if (tryJar(file, attempt, needs)) {
      return;
    }
    StringBuilder text = new StringBuilder(file + " was not loaded; tried");
    for (String line : tried) {
      text.append("\n    ").append(line);
    }
    throw new VipLibraryException(text.toString(), "\n" + INSTALL);
  }

  /**
   * Where packages put libraries for Java and a JDK from elsewhere does not look. Those that are
   * there alone are tried and named.
   */
  private static List<String> distributionFolders() {
    String arch = platform().substring(platform().indexOf('-') + 1);
    List<String> folders = new ArrayList<>();
    for (String root : new String[] {"/usr/local", "/usr"}) {
      for (String lib : new String[] {"/lib/" + arch + "-linux-gnu", "/lib64", "/lib"}) {
        folders.add(root + lib + "/jni");
        folders.add(root + lib);
      }
    }
    return folders;
  }

  private boolean tryFolder(String property, Path path, Attempt attempt) {
    if (!Files.exists(path)) {
      return note(property, path.toString(), "no such file");
    }
    String problem = attempt.open(path.toAbsolutePath().toString());
    if (problem != null && property.equals(PATH_PROPERTY)) {
      throw new VipLibraryException(
          path + ", of " + PATH_PROPERTY + ": " + problem, "Name another folder, or none");
    }
    return note(property, path.toString(), problem);
  }

  private boolean tryJar(String file, Attempt attempt, String... needs) {
    String problem;
    try {
      Path folder = Files.createTempDirectory("viaduct"); // of mode 0700, with a name by chance
      try {
        problem = openOfJar(folder, file, attempt, needs);
      } finally {
        Files.deleteIfExists(folder);
      }
    } catch (IOException e) {
      problem = "cannot be copied to java.io.tmpdir: " + e;
    }
    return note("the class path", entry(file), problem);
  }

  /** Null, or what is wrong; where it needs a library that is not installed, with that one. */
  private static String openOfJar(Path folder, String file, Attempt attempt, String... needs)
      throws IOException {
    Path copy = folder.resolve(file);
    try (InputStream in = Loader.class.getClassLoader().getResourceAsStream(entry(file))) {
      if (in == null) {
        return "no such entry";
      }
      Files.copy(in, copy);
      String problem = attempt.open(copy.toString());
      if (problem != null && needs.length > 0) {
        String[] more = Arrays.copyOfRange(needs, 1, needs.length);
        Attempt load = place -> loadJni(needs[0], needs[0], place);
        if (openOfJar(folder, needs[0], load, more) == null) {
          problem = attempt.open(copy.toString());
        }
      }
      return problem;
    } finally {
      Files.deleteIfExists(copy);
    }
  }

  private static String entry(String file) {
    return "META-INF/native/" + platform() + "/" + file;
  }

  private static String platform() {
    String arch = System.getProperty("os.arch");
    return "linux-" + (arch.equals("amd64") ? "x86_64" : arch);
  }

  private boolean note(String where, String place, String problem) {
    if (problem != null) {
      tried.add(place + " (" + where + "): " + problem);
    }
    return problem == null;
  }

  private static String table() {
    try {
      String table = Layout.built();
      if (table == null) {
        throw new VipLibraryException(
            "the jar has no layout.txt", "Build the jar with Meson, or Maven after Meson");
      }
      return table;
    } catch (IOException e) {
      throw new VipLibraryException("layout.txt cannot be read: " + e, "Repair the jar");
    }
  }

  private static void checkLayout(String what, String table) {
    String difference = Layout.difference(table);
    if (difference != null) {
      throw new VipLibraryException(
          "the structures of C that " + what + " was built with differ: " + difference,
          "Use a jar and a library of the same release, for this platform");
    }
  }
}

/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.vipl.spi;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Links functions of libvipl and of the C library. Addresses are numbers, so that no object is made
 * or checked for a call.
 */
final class Link {
  private static final Linker LINKER = Linker.nativeLinker();
  private static SymbolLookup library;

  private Link() {}

  /** Opens libvipl; null, or what is wrong with it. */
  static synchronized String open(String path, long version) {
    SymbolLookup lookup;
    try {
      lookup =
          path.startsWith("/")
              ? SymbolLookup.libraryLookup(Path.of(path), Arena.global())
              : SymbolLookup.libraryLookup(path, Arena.global());
    } catch (IllegalArgumentException e) {
      return "dlopen failed: " + e.getMessage();
    } catch (IllegalCallerException e) {
      return "native access is denied; --enable-native-access=org.viaduct allows it"
          + " (on a class path ALL-UNNAMED)";
    }
    Optional<MemorySegment> query = lookup.find("VipxQueryVersion");
    if (query.isEmpty()) {
      return "no library of Viaduct: it has no VipxQueryVersion";
    }
    String problem = checkVersion(query.get(), version);
    if (problem != null) {
      return problem;
    }
    problem = missing(lookup);
    if (problem == null) {
      library = lookup;
    }
    return problem;
  }

  private static String missing(SymbolLookup lookup) {
    for (Class<?> header : new Class<?>[] {ViplCalls.class, VipxCalls.class}) {
      for (Method method : header.getDeclaredMethods()) {
        String name = "V" + method.getName().substring(1);
        if (lookup.find(name).isEmpty()) {
          return "it has no function " + name;
        }
      }
    }
    return null;
  }

  private static String checkVersion(MemorySegment function, long wanted) {
    MethodHandle query = LINKER.downcallHandle(function, shape("IJJ"));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment extension = arena.allocate(ValueLayout.JAVA_LONG);
      MemorySegment release = arena.allocate(ValueLayout.ADDRESS);
      int code = (int) query.invokeExact(extension.address(), release.address());
      long version = extension.get(ValueLayout.JAVA_LONG, 0);
      if (code == 0 && version >= wanted) {
        return null;
      }
      String name = text(release.get(ValueLayout.JAVA_LONG, 0));
      return "its extensions are of version "
          + version
          + " (release "
          + name
          + "), this binding needs version "
          + wanted;
    } catch (Throwable problem) {
      throw failed(problem);
    }
  }

  /** The result, then the parameters: J is 64 bits, I is 32. */
  static FunctionDescriptor shape(String types) {
    MemoryLayout[] parameters = new MemoryLayout[types.length() - 1];
    for (int i = 0; i < parameters.length; i++) {
      parameters[i] = layout(types.charAt(i + 1));
    }
    return types.charAt(0) == 'V'
        ? FunctionDescriptor.ofVoid(parameters)
        : FunctionDescriptor.of(layout(types.charAt(0)), parameters);
  }

  private static MemoryLayout layout(char type) {
    return type == 'I' ? ValueLayout.JAVA_INT : ValueLayout.JAVA_LONG;
  }

  /** A function that may take long. */
  static MethodHandle plain(String name, String types) {
    return LINKER.downcallHandle(find(name), shape(types));
  }

  /** A function that cannot sleep: the collector waits until it returns. */
  static MethodHandle critical(String name, String types) {
    return LINKER.downcallHandle(find(name), shape(types), Linker.Option.critical(false));
  }

  /** A function of the C library. */
  static MethodHandle system(String name, String types) {
    return LINKER.downcallHandle(LINKER.defaultLookup().find(name).orElseThrow(), shape(types));
  }

  /** The address of a C function that calls a method. */
  static long upcall(MethodHandle method, String types) {
    return LINKER.upcallStub(method, shape(types), Arena.global()).address();
  }

  private static MemorySegment find(String name) {
    return library.find(name).orElseThrow();
  }

  /** The text at an address. */
  static String text(long address) {
    return address == 0
        ? null
        : MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
  }

  /** Throws an error, or returns an exception to throw, that a call threw; C never throws. */
  static RuntimeException failed(Throwable problem) {
    if (problem instanceof Error error) {
      throw error;
    }
    return problem instanceof RuntimeException runtime
        ? runtime
        : new IllegalStateException(problem);
  }
}

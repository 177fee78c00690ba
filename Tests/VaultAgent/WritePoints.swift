#if os(Linux)
import AssentCore
import Foundation
import Glibc

/// The system calls that change files, taken over from the C library in this program: the linker prefers the program's
/// own functions to a shared library's. So the vault's code is the one that apps run, and still dies where a test wants
/// it.
enum WritePoints {
    private struct State {
        var next = 0
        var deadly = -1
        var isTearing = false
        var isTelling = false
    }

    private enum Verdict {
        case goOn
        case tear
    }

    private static let state = Locked(State())

    static func arm(dyingBefore number: Int, tearing: Bool, telling: Bool) {
        state.withLock { $0 = State(deadly: number, isTearing: tearing, isTelling: telling) }
    }

    /// The C library's own function.
    fileprivate static func original<Function>(_ name: String, _ type: Function.Type) -> Function {
        // RTLD_NEXT, which is a cast in C.
        guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else { abort() }
        return unsafeBitCast(address, to: type)
    }

    /// Comes before a change. Does not come back when this is where to die, except to let half of a write through.
    private static func pass(_ what: String, canTear: Bool) -> Verdict {
        let (isDeadly, isTearing, isTelling) = state.withLock { state in
            defer { state.next += 1 }
            return (state.next == state.deadly, state.isTearing, state.isTelling)
        }
        if isTelling { tell("step \(what)\n") }
        guard isDeadly else { return .goOn }
        if isTearing, canTear { return .tear }
        die()
    }

    fileprivate static func change(_ what: String, _ call: () -> Int32) -> Int32 {
        _ = pass(what, canTear: false)
        return call()
    }

    fileprivate static func write(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
        let original = original("write", (@convention(c) (Int32, UnsafeRawPointer?, Int) -> Int).self)
        guard kind(of: file) == S_IFREG, pass("write", canTear: true) == .tear else {
            return original(file, bytes, count)
        }
        _ = original(file, bytes, count / 2)
        die()
    }

    fileprivate static func sync(_ file: Int32) -> Int32 {
        let original = original("fsync", (@convention(c) (Int32) -> Int32).self)
        return change(kind(of: file) == S_IFDIR ? "syncDirectory" : "sync") { original(file) }
    }

    private static func kind(of file: Int32) -> mode_t {
        var attributes = stat()
        return fstat(file, &attributes) == 0 ? attributes.st_mode & S_IFMT : 0
    }

    private static func tell(_ line: String) {
        let original = original("write", (@convention(c) (Int32, UnsafeRawPointer?, Int) -> Int).self)
        var line = line
        line.withUTF8 { _ = original(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    private static func die() -> Never {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}

@_cdecl("write")
func interposedWrite(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    WritePoints.write(file, bytes, count)
}

@_cdecl("fsync")
func interposedSync(_ file: Int32) -> Int32 { WritePoints.sync(file) }

@_cdecl("mkdir")
func interposedMakeDirectory(_ path: UnsafePointer<CChar>?, _ mode: mode_t) -> Int32 {
    let original = WritePoints.original("mkdir", (@convention(c) (UnsafePointer<CChar>?, mode_t) -> Int32).self)
    return WritePoints.change("mkdir") { original(path, mode) }
}

@_cdecl("renameat")
func interposedRename(
    _ from: Int32, _ source: UnsafePointer<CChar>?, _ to: Int32, _ target: UnsafePointer<CChar>?
) -> Int32 {
    let original = WritePoints.original(
        "renameat",
        (@convention(c) (Int32, UnsafePointer<CChar>?, Int32, UnsafePointer<CChar>?) -> Int32).self)
    return WritePoints.change("rename") { original(from, source, to, target) }
}

@_cdecl("linkat")
func interposedLink(
    _ from: Int32, _ source: UnsafePointer<CChar>?, _ to: Int32, _ target: UnsafePointer<CChar>?, _ flags: Int32
) -> Int32 {
    let original = WritePoints.original(
        "linkat",
        (@convention(c) (Int32, UnsafePointer<CChar>?, Int32, UnsafePointer<CChar>?, Int32) -> Int32).self)
    return WritePoints.change("link") { original(from, source, to, target, flags) }
}

@_cdecl("unlinkat")
func interposedRemove(_ directory: Int32, _ name: UnsafePointer<CChar>?, _ flags: Int32) -> Int32 {
    let original = WritePoints.original(
        "unlinkat", (@convention(c) (Int32, UnsafePointer<CChar>?, Int32) -> Int32).self)
    return WritePoints.change("remove") { original(directory, name, flags) }
}
#else
/// Only Linux lets a program take over the C library's functions in this way.
enum WritePoints {
    static func arm(dyingBefore number: Int, tearing: Bool, telling: Bool) {}
}
#endif

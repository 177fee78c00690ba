#if Keyring && os(Linux)
import AssentCore
import Glibc

/// The calls that change keys, taken over from libkeyutils in this program: the linker prefers the program's own
/// functions. So the store's code is the one that apps run, and still dies where a test wants it.
enum ChangePoints {
    private static let state = Locked((next: 0, deadly: -1))

    static func arm(dyingBefore number: Int) {
        state.withLock { $0 = (0, number) }
    }

    /// The library's own function.
    fileprivate static func original<Function>(_ name: String, _ type: Function.Type) -> Function {
        // RTLD_NEXT, which is a cast in C.
        guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else { abort() }
        return unsafeBitCast(address, to: type)
    }

    /// Comes before a change; does not come back when this is where to die.
    fileprivate static func pass() {
        let isDeadly = state.withLock { state in
            defer { state.next += 1 }
            return state.next == state.deadly
        }
        guard isDeadly else { return }
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}

@_cdecl("add_key")
func interposedAdd(
    _ type: UnsafePointer<CChar>?, _ description: UnsafePointer<CChar>?, _ payload: UnsafeRawPointer?, _ count: Int,
    _ ring: Int32
) -> Int32 {
    typealias Add =
        @convention(c) (UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafeRawPointer?, Int, Int32) -> Int32
    ChangePoints.pass()
    return ChangePoints.original("add_key", Add.self)(type, description, payload, count, ring)
}

@_cdecl("keyctl_link")
func interposedLink(_ key: Int32, _ ring: Int32) -> Int {
    ChangePoints.pass()
    return ChangePoints.original("keyctl_link", (@convention(c) (Int32, Int32) -> Int).self)(key, ring)
}

@_cdecl("keyctl_unlink")
func interposedUnlink(_ key: Int32, _ ring: Int32) -> Int {
    ChangePoints.pass()
    return ChangePoints.original("keyctl_unlink", (@convention(c) (Int32, Int32) -> Int).self)(key, ring)
}

@_cdecl("keyctl_update")
func interposedUpdate(_ key: Int32, _ payload: UnsafeRawPointer?, _ count: Int) -> Int {
    typealias Update = @convention(c) (Int32, UnsafeRawPointer?, Int) -> Int
    ChangePoints.pass()
    return ChangePoints.original("keyctl_update", Update.self)(key, payload, count)
}
#endif

#if Keyring && os(Linux)
import CKeyutils
import Glibc

/// A key or keyring by its serial number, and what the kernel does with it (keyctl(2)). No call blocks.
///
/// What a thread may do depends on possession: a key is possessed by a thread from whose keyrings it can be reached. So
/// each operation links what it works on into the thread's own keyring, where it stays alive whatever others do
/// meanwhile.
struct KernelKey: Hashable {
    static let thread = KernelKey(serial: KEY_SPEC_THREAD_KEYRING)
    static let user = KernelKey(serial: KEY_SPEC_USER_KEYRING)

    private static let attempts = 64

    /// Longer than any description of ours with owner and permissions in front.
    private static let descriptionLimit = 2048

    enum Kind: String {
        case keyring
        case user
    }

    struct Description: Hashable {
        let kind: String
        let owner: UInt32
        let permissions: UInt32
        let text: String
    }

    let serial: Int32

    /// Makes a key in a keyring; one of the same description is replaced. Only its possessor has access.
    static func add(
        _ kind: Kind, _ description: String, _ payload: UnsafeRawBufferPointer = .init(start: nil, count: 0),
        to ring: KernelKey
    ) throws -> KernelKey {
        let serial = try check(
            "making a key",
            Int(add_key(kind.rawValue, description, payload.baseAddress, payload.count, ring.serial)))
        let key = KernelKey(serial: Int32(truncatingIfNeeded: serial))
        _ = try check("setting permissions", keyctl_setperm(key.serial, possessorOnly))
        return key
    }

    /// `KEY_POS_ALL`: everything for the possessor, nothing for user, group and others.
    static let possessorOnly: UInt32 = 0x3F00_0000

    /// The user's persistent keyring, linked into `ring`; its time begins anew.
    static func persistent(into ring: KernelKey) throws -> KernelKey {
        let serial = try check("opening the persistent keyring", keyctl_get_persistent(uid_t.max, ring.serial))
        return KernelKey(serial: Int32(truncatingIfNeeded: serial))
    }

    /// The key of this description that lies in this keyring itself, linked into `ring`; `nil` when there is none.
    func find(_ kind: Kind, _ description: String, into ring: KernelKey) throws -> KernelKey? {
        var former: KernelKey?
        for _ in 0..<Self.attempts {
            let serial = keyctl_search(self.serial, kind.rawValue, description, ring.serial)
            if serial < 0, errno == ENOKEY { return nil }
            let key = KernelKey(serial: Int32(truncatingIfNeeded: try Self.check("looking for a key", serial)))
            if try members().contains(key) { return key }
            key.unlinkQuietly(from: ring)
            // Found twice, it is in a keyring inside, where the kernel looks, too; else it was replaced just now.
            if key == former { return nil }
            former = key
        }
        throw KeyringFailure(code: EBUSY, action: "looking for a key")
    }

    /// What lies in this keyring.
    func members(limit: Int = 1 << 16) throws -> [KernelKey] {
        var size = try Self.check("listing a keyring", keyctl_read(serial, nil, 0))
        while true {
            guard size <= limit * MemoryLayout<Int32>.size else {
                throw KeyringFailure(code: ENFILE, action: "listing a keyring")
            }
            var serials = [Int32](repeating: 0, count: size / MemoryLayout<Int32>.size)
            let found = try serials.withUnsafeMutableBytes { buffer in
                try Self.check(
                    "listing a keyring",
                    keyctl_read(serial, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count))
            }
            if found <= serials.count * MemoryLayout<Int32>.size {
                return serials.prefix(found / MemoryLayout<Int32>.size).map { KernelKey(serial: $0) }
            }
            size = found
        }
    }

    /// Copies the payload to `buffer`, as far as there is room.
    ///
    /// - Returns: how long the payload is.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        try Self.check(
            "reading a key",
            keyctl_read(serial, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count))
    }

    /// The payload of a key that has exactly `count` bytes; `nil` when it has not.
    func payload(_ count: Int) throws -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let size = try bytes.withUnsafeMutableBytes { buffer in try read(into: buffer) }
        return size == count ? bytes : nil
    }

    /// Replaces the payload, in one step.
    func update(_ payload: [UInt8]) throws {
        _ = try Self.check(
            "changing a key", payload.withUnsafeBytes { keyctl_update(serial, $0.baseAddress, $0.count) })
    }

    func describe() throws -> Description {
        var text = [UInt8](repeating: 0, count: Self.descriptionLimit)
        let size = try text.withUnsafeMutableBytes { buffer in
            try Self.check(
                "describing a key",
                keyctl_describe(serial, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count))
        }
        // type;uid;gid;permissions;description, and a zero.
        let fields = String(decoding: text.prefix(max(0, min(size, text.count) - 1)), as: UTF8.self)
            .split(separator: ";", maxSplits: 4, omittingEmptySubsequences: false)
        guard fields.count == 5, let owner = UInt32(fields[1]), let permissions = UInt32(fields[3], radix: 16) else {
            throw KeyringFailure(code: EIO, action: "describing a key")
        }
        return Description(kind: String(fields[0]), owner: owner, permissions: permissions, text: String(fields[4]))
    }

    /// Links this key into a keyring. What has the same kind and description there is replaced, in one step.
    func link(into ring: KernelKey) throws {
        _ = try Self.check("linking a key", keyctl_link(serial, ring.serial))
    }

    func unlink(from ring: KernelKey) throws {
        _ = try Self.check("removing a key", keyctl_unlink(serial, ring.serial))
    }

    func unlinkQuietly(from ring: KernelKey) { _ = keyctl_unlink(serial, ring.serial) }

    /// The kernel gives the payload out for so many seconds, and then forgets it.
    func expire(after seconds: UInt32) throws {
        _ = try Self.check("setting a time to live", keyctl_set_timeout(serial, seconds))
    }

    private static func check(_ action: String, _ result: Int) throws -> Int {
        guard result >= 0 else { throw KeyringFailure(code: errno, action: action) }
        return result
    }
}
#endif

#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit
import Foundation

/// A loaded PKCS#11 module.
///
/// p11-kit loads it: it counts who in this process has initialized the module, so that finalizing here ends nobody
/// else's sessions (PKCS#11 has one state per process), and it starts anew in a forked child.
final class PKCS11Module {
    private static let versions: ClosedRange<UInt8> = 2...3
    private static let slotLimit: CK_ULONG = 1_024

    /// Held while slots are listed. SoftHSM adds a slot to its list then, without a lock of its own: two threads at
    /// once end the process.
    private static let listing = NSLock()

    private let list: UnsafeMutablePointer<CK_FUNCTION_LIST>
    private var isInitialized = false

    /// Loads and initializes the module at an absolute `path`.
    init(path: String) throws(KeyProviderError) {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw KeyProviderError(
                .invalidInput,
                "A PKCS#11 module is named by its absolute path, for example /usr/lib/softhsm/libsofthsm2.so.")
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw KeyProviderError(
                .unavailable,
                "There is no PKCS#11 module at \(path). Install the token's driver, or correct the path.")
        }
        guard status.st_mode & 0o022 == 0, [0, geteuid()].contains(status.st_uid) else {
            throw KeyProviderError(
                .unavailable,
                "Others can change the PKCS#11 module \(path), and its code would run here. chown and chmod go-w it.")
        }
        guard let list = p11_kit_module_load(path, 0) else {
            throw KeyProviderError(
                .unavailable,
                "\(path) is not a PKCS#11 module\(Self.loaderMessage). Name the token's module for this processor.")
        }
        // From here on, deinit releases it, also when this throws.
        self.list = list
        let result = p11_kit_module_initialize(list)
        guard result == CKR_OK else {
            throw KeyProviderError(
                .unavailable,
                "The module \(path) does not start\(PKCS11Failure.name(of: result)). See its configuration and log.")
        }
        isInitialized = true
        // The list's own version is p11-kit's, which wraps the module.
        var info = CK_INFO()
        let answer = list.pointee.C_GetInfo?(&info) ?? CKR_FUNCTION_NOT_SUPPORTED
        guard answer == CKR_OK, Self.versions.contains(info.cryptokiVersion.major) else {
            let version = "PKCS#11 \(info.cryptokiVersion.major).\(info.cryptokiVersion.minor)"
            throw KeyProviderError(
                .unavailable,
                "The module \(path) \(answer == CKR_OK ? "speaks \(version)" : "does not say what it speaks"), and this is "
                    + "for 2 and 3. Install the driver's current version.")
        }
    }

    deinit {
        if isInitialized { p11_kit_module_finalize(list) }
        p11_kit_module_release(list)
    }

    private static var loaderMessage: String {
        guard let text = p11_kit_message() else { return "" }
        return " (" + String(cString: text) + ")"
    }

    /// One of the module's functions; a module may leave out any.
    func function<Function>(_ path: KeyPath<CK_FUNCTION_LIST, Function?>) throws -> Function {
        guard let function = list.pointee[keyPath: path] else {
            throw PKCS11Failure(code: CKR_FUNCTION_NOT_SUPPORTED, action: "calling the module").error
        }
        return function
    }

    /// The slots that hold the token with this label (and serial number).
    func slots(label: String, serial: String?) throws -> [(slot: CK_SLOT_ID, info: CK_TOKEN_INFO)] {
        try slots().compactMap { slot in
            var info = CK_TOKEN_INFO()
            let result = try function(\.C_GetTokenInfo)(slot, &info)
            // A token that was pulled out between the two calls counts as absent.
            guard result == CKR_OK, info.flags & CKF_TOKEN_INITIALIZED != 0 else { return nil }
            guard Self.text(info.label) == label, serial == nil || Self.text(info.serialNumber) == serial else {
                return nil
            }
            return (slot, info)
        }
    }

    /// The labels of all tokens that were initialized, each once.
    func labels() throws -> [String] {
        let getTokenInfo = try function(\.C_GetTokenInfo)
        let labels = try slots().compactMap { slot -> String? in
            var info = CK_TOKEN_INFO()
            guard getTokenInfo(slot, &info) == CKR_OK, info.flags & CKF_TOKEN_INITIALIZED != 0 else { return nil }
            return Self.text(info.label)
        }
        return Set(labels).sorted()
    }

    func tokenInfo(_ slot: CK_SLOT_ID) throws -> CK_TOKEN_INFO {
        var info = CK_TOKEN_INFO()
        try check("asking for the token's state", try function(\.C_GetTokenInfo)(slot, &info))
        return info
    }

    /// All slots that hold a token, initialized or not.
    func slots() throws -> [CK_SLOT_ID] {
        let getSlotList = try function(\.C_GetSlotList)
        Self.listing.lock()
        defer { Self.listing.unlock() }
        for _ in 0..<4 {
            var count: CK_ULONG = 0
            try check("listing slots", getSlotList(1, nil, &count))
            guard count <= Self.slotLimit else { throw PKCS11Failure.nonsense("\(count) slots") }
            guard count > 0 else { return [] }
            var slots = [CK_SLOT_ID](repeating: 0, count: Int(count))
            let result = getSlotList(1, &slots, &count)
            // Somebody inserted a token meanwhile.
            if result == CKR_BUFFER_TOO_SMALL { continue }
            try check("listing slots", result)
            guard count <= slots.count else { throw PKCS11Failure.nonsense("more slots than it said") }
            return Array(slots.prefix(Int(count)))
        }
        throw PKCS11Failure.nonsense("the slots change all the time")
    }

    /// Throws what is not `CKR_OK`.
    func check(_ action: String, _ result: CK_RV) throws(PKCS11Failure) {
        guard result == CKR_OK else { throw PKCS11Failure(code: result, action: action) }
    }

    /// A blank-padded field of fixed length (PKCS #11 v2.40 §3).
    private static func text<Field>(_ field: Field) -> String {
        withUnsafeBytes(of: field) { bytes in
            let used = bytes.lastIndex { $0 != 0x20 && $0 != 0 }.map { $0 + 1 } ?? 0
            return String(decoding: bytes.prefix(used), as: UTF8.self)
        }
    }
}
#endif

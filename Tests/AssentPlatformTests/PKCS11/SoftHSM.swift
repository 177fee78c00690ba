#if PKCS11 && os(Linux)
import AssentCore
import AssentPeers
import CP11Kit
import Foundation
import TestSupport
import Testing

@testable import AssentPlatform

/// SoftHSM with tokens in a directory of this test run, and modules that pass on to it with faults.
///
/// SoftHSM has one state per process and reads its configuration's place from the environment, so this is the only one.
final class SoftHSM: Sendable {
    static let shared = Result { try SoftHSM() }

    static let pin = Secret("271828")
    private static let officerPIN = "31415926"
    private static let library = "/usr/lib/softhsm/libsofthsm2.so"

    let module = SoftHSM.library
    private let directory: TemporaryDirectory
    private let faultyModule: String
    /// SoftHSM reports the tokens that were there when it was initialized, and this keeps it so.
    private let listing: Locked<PKCS11Module>
    private let count = Locked(0)
    private let copies = Locked<[FaultyModule]>([])

    private init() throws {
        directory = try TemporaryDirectory()
        let tokens = directory.path("tokens")
        try FileManager.default.createDirectory(atPath: tokens, withIntermediateDirectories: true)
        try Data("directories.tokendir = \(tokens)\nobjectstore.backend = file\nlog.level = ERROR\n".utf8)
            .write(to: directory.url.appending(path: "softhsm2.conf"))
        setenv("SOFTHSM2_CONF", directory.path("softhsm2.conf"), 1)
        listing = Locked(try PKCS11Module(path: module))
        faultyModule = directory.path("faulty.so")
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "faulty-module.c")
        try Self.run(
            "/usr/bin/env",
            [
                "clang", "-shared", "-fPIC", "-I/usr/include/p11-kit-1", "-DSOFTHSM=\"\(module)\"", "-o", faultyModule,
                source.path(percentEncoded: false), "-ldl",
            ])
    }

    static func run(_ program: String, _ arguments: [String]) throws {
        let done = try FinishedProcess.run(program, arguments)
        try #require(done.status == 0, "\(arguments.first ?? "") failed: \(done.complaints)")
    }

    /// Makes a token with a user PIN and returns its label.
    func makeToken(pin: Secret? = SoftHSM.pin) throws -> String {
        let number = count.withLock { count in
            count += 1
            return count
        }
        let label = "token \(number) of this test"
        try listing.withLock { module in
            let free = try #require(
                module.slots().first { slot in ((try? module.tokenInfo(slot))?.flags ?? ~0) & CKF_TOKEN_INITIALIZED == 0
                })
            var officer = Array(Self.officerPIN.utf8)
            let length = CK_ULONG(officer.count)
            var padded = Array(label.utf8) + [UInt8](repeating: 0x20, count: 32 - label.utf8.count)
            try module.check("making a token", try module.function(\.C_InitToken)(free, &officer, length, &padded))
            guard let pin else { return }
            let slot = try #require(try module.slots(label: label, serial: nil).first).slot
            var session: CK_SESSION_HANDLE = 0
            let flags = CKF_SERIAL_SESSION | CKF_RW_SESSION
            try module.check("opening", try module.function(\.C_OpenSession)(slot, flags, nil, nil, &session))
            defer { _ = try? module.function(\.C_CloseSession)(session) }
            try module.check("login", try module.function(\.C_Login)(session, CKU_SO, &officer, length))
            var user = pin.revealBytes()
            try module.check("PIN", try module.function(\.C_InitPIN)(session, &user, CK_ULONG(user.count)))
            try module.check("logout", try module.function(\.C_Logout)(session))
        }
        return label
    }

    /// Works with a token as another program would.
    func withSession<Value: Sendable>(
        _ label: String, pin: Secret? = SoftHSM.pin, _ body: (PKCS11Session) throws -> Value
    ) throws -> Value {
        let session = try PKCS11Session(PKCS11Module(path: module), token: label, serial: nil)
        if let pin { try session.login(pin) }
        return try body(session)
    }

    /// The files in which SoftHSM keeps what it guards.
    func tokenFiles() -> [UInt8] { directory.bytes() }

    /// A provider for a token through the real module.
    func provider(
        _ label: String, pin: (any UserPresence)? = KnownSecret(SoftHSM.pin), existing: [String: [UInt8]] = [:]
    ) -> PKCS11KeyProvider {
        PKCS11KeyProvider(
            module: module, token: label, pin: pin, existing: existing, lockTimeout: Double(Patience.seconds))
    }

    /// The path of a module that nobody else makes keys through: who waits ten seconds for the lock on its file, as
    /// apps do, does not wait for other tests.
    func ownModule() throws -> String {
        let module = try faulty()
        copies.withLock { $0.append(module) }
        return module.path
    }

    /// A module of its own that can be told to fail.
    func faulty() throws -> FaultyModule {
        let own = try TemporaryDirectory()
        try FileManager.default.copyItem(atPath: faultyModule, toPath: own.path("module.so"))
        return FaultyModule(directory: own)
    }
}

/// A module that passes on to SoftHSM, except for its faults.
struct FaultyModule: Sendable {
    let directory: TemporaryDirectory

    var path: String { directory.path("module.so") }

    /// From now on, this goes wrong; nothing else does.
    func set(_ faults: [String: UInt]) throws {
        let text = faults.map { "\($0) \($1)\n" }.joined()
        try Data(text.utf8).write(to: directory.url.appending(path: "module.so.faults"), options: .atomic)
    }

    func provider(_ label: String, pin: (any UserPresence)? = KnownSecret(SoftHSM.pin)) -> PKCS11KeyProvider {
        PKCS11KeyProvider(module: path, token: label, pin: pin, lockTimeout: Double(Patience.seconds))
    }
}
#endif

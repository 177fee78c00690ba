#if TPM && PKCS11 && os(Linux)
import Assent
import AssentOTP
import AssentPeers
import AssentServer
import AssentVault
import Foundation
import Logging
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo
@testable import AssentPlatform

/// What an app writes for `keys:` when it makes an `Assent`, with a server, a token and a TPM.
@Suite("Signing in into a vault, for each choice of what guards it")
struct FacadeVaultTests {
    private static let passphrase = Secret("correct horse battery staple")
    private static let wrong = Secret("incorrect horse")

    /// A server on free ports, and a directory for vaults.
    private struct Bench {
        let world: DemoWorld
        let clock: DemoClock
        let place: TemporaryDirectory

        static func run(_ body: (Bench) async throws -> Void) async throws {
            let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            var sources = DemoWorld.Sources(
                configurationFile: package.appending(path: "Examples/bank/assent.yaml").path,
                programs: BuiltProgram.beside("AssentExampleBank").deletingLastPathComponent())
            sources.leastLimit = .seconds(Patience.seconds)
            sources.configure = { $0.bePatient(seconds: 600) }
            let clock = DemoClock()
            let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            let world = try await DemoWorld.start(sources: sources, clock: clock, logger: logger)
            do {
                try await body(Bench(world: world, clock: clock, place: try TemporaryDirectory()))
            } catch {
                await world.stop()
                throw error
            }
            await world.stop()
        }

        func vault(_ name: String) -> URL { place.url.appending(path: name) }

        /// The SDK as an app makes it at each start. With a `provider` sessions and tokens belong to a key of it.
        func assent(_ name: String, _ keys: VaultKeys, proving provider: (any KeyProvider)? = nil) throws -> Assent {
            let file = try #require(ClientFile(endpoints: world.endpoints, configuration: world.configuration))
            var configuration = file.configuration(vault: .file(at: vault(name), keys: keys))
            configuration.clock = clock
            configuration.leastLimit = world.leastLimit
            if let provider { configuration.dpop = .on(keys: provider) }
            return try Assent(configuration)
        }

        func signIn(_ assent: Assent) async throws {
            clock.advance(by: 30)
            let code = try TOTP(secret: world.account.totpSeed).code(at: clock.now)
            try await assent.journey("Login") { step in
                step[NameCallback.self]?.name = world.account.username
                step[PasswordCallback.self]?.password = world.account.password.reveal()
                step[TextInputCallback.self]?.text = code
                return .next
            }
        }

        func balance(_ assent: Assent) async throws -> String? {
            let reply = try await assent.send(.get("\(world.endpoints.gateway ?? "")/accounts"))
            return try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))["balance"]?.string
        }

        /// Signs in, starts the app again, calls the bank, and signs out.
        func live(_ name: String, _ keys: () throws -> VaultKeys) async throws {
            let first = try assent(name, try keys())
            try await signIn(first)
            await first.shutdown()
            let second = try assent(name, try keys())
            #expect(try await second.user()?.session != nil, "\(name): nobody is signed in after a restart")
            #expect(try await balance(second) == "1000.00", "\(name)")
            let result = await second.signOut()
            #expect(result.undone.isEmpty && result.localFailure == nil, "\(name)")
            await second.shutdown()
            let third = try assent(name, try keys())
            #expect(try await third.user() == nil, "\(name): signing out left somebody")
            await third.shutdown()
        }

        /// What opening the vault in another way than it was made says.
        func refusal(_ name: String, _ keys: VaultKeys) async throws -> String {
            let assent = try assent(name, keys)
            let error = await #expect(throws: (any Error).self) { _ = try await assent.user() }
            await assent.shutdown()
            return error.map { "\($0)" } ?? ""
        }
    }

    @Test("A passphrase, a token and a TPM each keep a sign-in over a restart, and end it when the user signs out")
    func choices() async throws {
        let hsm = try SoftHSM.shared.get()
        let (module, label) = (try hsm.ownModule(), try hsm.makeToken())
        let tpm = try SoftTPM()
        let pin = KnownSecret(SoftHSM.pin)
        try await Bench.run { bench in
            try await bench.live("passphrase") { .passphrase(Self.passphrase) }
            try await bench.live("pkcs11") { .pkcs11(module: module, token: label, pin: pin) }
            try await bench.live("tpm") { .tpm(tpm.tcti, pin: KnownSecret(SoftTPM.pin)) }
            try await bench.live("hardware") {
                .requireHardware(PKCS11KeyProvider(module: module, token: label, pin: pin))
            }
            try await bench.live("preferred") {
                .preferHardware([tpm.provider()], otherwise: .passphrase(KnownSecret(Self.passphrase)))
            }
            let info = try await FileVault.open(
                bench.vault("preferred"), keys: .requireHardware(tpm.provider()), createIfMissing: false
            ).info()
            #expect(info.protection == .hardware && info.level == .preferHardware)
        }
    }

    @Test("Session and tokens belong to a key in a PKCS#11 token, or in a TPM, which proves them after a restart")
    func bound() async throws {
        let hsm = try SoftHSM.shared.get()
        let tpm = try SoftTPM()
        let providers: [(name: String, keys: any KeyProvider)] = [
            ("pkcs11", hsm.provider(try hsm.makeToken())), ("tpm", tpm.provider()),
        ]
        try await Bench.run { bench in
            for (name, keys) in providers {
                let first = try bench.assent(name, .passphrase(Self.passphrase), proving: keys)
                try await bench.signIn(first)
                let thumbprint = try #require(try await first.tokens.tokens().keyThumbprint, "\(name): not bound")
                #expect(try await first.user()?.session?.keyThumbprint == thumbprint, "\(name)")
                #expect(try await keys.keyNames().count == 1, "\(name)")
                await first.shutdown()
                let second = try bench.assent(name, .passphrase(Self.passphrase), proving: keys)
                #expect(try await bench.balance(second) == "1000.00", "\(name)")
                #expect(try await second.tokens.tokens().keyThumbprint == thumbprint, "\(name)")
                let result = await second.signOut()
                #expect(result.undone.isEmpty && result.localFailure == nil, "\(name)")
                #expect(try await keys.keyNames().isEmpty, "\(name)")
                await second.shutdown()
            }
        }
    }

    @Test("A token that another process uses is waited for, also while the app's clock stands still")
    func waiting() async throws {
        let hsm = try SoftHSM.shared.get()
        let (module, label) = (try hsm.ownModule(), try hsm.makeToken())
        try await Bench.run { bench in
            let other = open(module, O_RDONLY | O_CLOEXEC)
            #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
            let assent = try bench.assent(
                "waiting", .pkcs11(module: module, token: label, pin: KnownSecret(SoftHSM.pin)))
            let isOver = Locked(false)
            // A thread of its own lets go: this task may get its turn again only when the app waits no longer.
            Thread.detachNewThread {
                // Whoever wants the lock has the module's file open.
                while Self.descriptors(of: module) < 2, !isOver.withLock({ $0 }) { _ = poll(nil, 0, 5) }
                _ = poll(nil, 0, 20)
                close(other)
            }
            defer { isOver.withLock { $0 = true } }
            try await bench.signIn(assent)
            await assent.shutdown()
        }
    }

    /// How often this process has a file open.
    private static func descriptors(of path: String) -> Int {
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let files = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return files.count {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)) == path
        }
    }

    @Test("The wrong passphrase or PIN opens nothing, and another choice than the vault was made with neither")
    func refused() async throws {
        let tpm = try SoftTPM()
        try await Bench.run { bench in
            let made = try bench.assent("passphrase", .passphrase(Self.passphrase))
            try await bench.signIn(made)
            await made.shutdown()
            #expect(try await bench.refusal("passphrase", .passphrase(Self.wrong)).contains("passphrase is wrong"))
            let mismatch = try await bench.refusal("passphrase", .tpm(tpm.tcti, pin: KnownSecret(SoftTPM.pin)))
            #expect(mismatch.contains("guarded by software"), "\(mismatch)")

            let chip = try bench.assent("tpm", .tpm(tpm.tcti, pin: KnownSecret(SoftTPM.pin)))
            try await bench.signIn(chip)
            await chip.shutdown()
            #expect(try await bench.refusal("tpm", .passphrase(Self.passphrase)).contains("guarded by tpm2"))
            let wrongPIN = try await bench.refusal("tpm", .tpm(tpm.tcti, pin: KnownSecret(Self.wrong)))
            #expect(wrongPIN.contains("PIN"), "\(wrongPIN)")
        }
    }

    @Test(
        "Hardware that is preferred and missing becomes a passphrase once; hardware that guarded the vault never does")
    func preferred() async throws {
        let tpm = try SoftTPM()
        let otherwise = VaultKeys.Software.passphrase(KnownSecret(Self.passphrase))
        try await Bench.run { bench in
            if !FileManager.default.fileExists(atPath: "/dev/tpmrm0") {
                try await bench.live("none") { .preferHardware(otherwise: otherwise) }
            }
            let chip = try bench.assent("chip", .preferHardware([tpm.provider()], otherwise: otherwise))
            try await bench.signIn(chip)
            await chip.shutdown()
            tpm.stop()
            let gone = try await bench.refusal("chip", .preferHardware([tpm.provider()], otherwise: otherwise))
            #expect(gone.contains("TPM"), "\(gone)")
            #expect(!FileManager.default.fileExists(atPath: bench.vault("chip").path + "/passphrase.keys"))
            try tpm.start()
            let back = try bench.assent("chip", .preferHardware([tpm.provider()], otherwise: otherwise))
            #expect(try await back.user()?.session != nil)
            await back.shutdown()
        }
    }

    @Test(
        "Hardware that is required and missing is an error with its reason, and not even the directory is made",
        .disabled(if: FileManager.default.fileExists(atPath: "/dev/tpmrm0")))
    func required() async throws {
        try await Bench.run { bench in
            let assent = try bench.assent("required", .requireHardware)
            let error = await #expect(throws: (any Error).self) { try await bench.signIn(assent) }
            #expect("\(String(describing: error))".contains("Hardware was asked for, and none is available"))
            #expect(!FileManager.default.fileExists(atPath: bench.vault("required").path))
            await assent.shutdown()
        }
    }
}
#endif

import AssentCore
import AssentPayload
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import Assent

@Suite("Payload encryption: what the trust file in force says")
struct TrustedPayloadOriginsTests {
    /// A vault whose entries cannot be read.
    private struct UnreadableStore: SecretStore {
        let base: MemorySecretStore

        func value(_ name: String) async throws -> StoredSecret? { throw SecretStoreError(.wrongKey, "It is sealed.") }
        func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
            try await base.update(name, to: value, expected: expected)
        }
        func names() async throws -> [String] { await base.names() }
        func removeAll() async throws { await base.removeAll() }
        func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
            try await base.lease(name, deadline: deadline)
        }
    }

    private static let audience = "app/linux/test"
    private static let source = "https://updates.bank.example/trust"

    private let servers = Servers()
    private let store: MemorySecretStore
    private let signers: [SoftwareSigningKey]
    /// What the source of trust files has, by version.
    private let files = Locked<[String: String]>([:])
    /// Whether the source answers.
    private let mayAnswer = Watched(true)
    /// What happens while the server is asked, once.
    private let whileAsked = Locked<(@Sendable () async -> Void)?>(nil)
    /// The keys of each origin that was made.
    private let made = Locked<[[String]]>([])

    init() throws {
        store = MemorySecretStore(clock: servers.clock)
        signers = try (1...2).map { _ in try .generate(.es256) }
    }

    /// A file that seals with the keys of two listeners.
    private func file(_ version: Int, mode: String, _ listeners: [SealedListener]) async throws -> TrustFile {
        try await servers.trustFile(
            sends: ["user"], payload: try servers.sealing(mode, with: listeners), source: Self.source,
            edition: TrustEdition(version: version, keys: signers))
    }

    /// What an app with this file is made with.
    private func configuration(_ file: TrustFile) -> Assent.Configuration {
        var configuration = Assent.Configuration(
            server: "https://am.example.com/am", client: .init(id: "app", redirectURI: "app:/cb"), trust: file,
            vault: .memory)
        configuration.clock = servers.clock
        let (files, mayAnswer, whileAsked) = (files, mayAnswer, whileAsked)
        configuration.transport = InMemoryTransport { exchange in
            if exchange.request.authority == "am.example.com" {
                await whileAsked.withLock { $0.take() }?()
            } else {
                await mayAnswer.wait { $0 }
            }
            let version = exchange.request.path?.split(separator: "/").last.map(String.init) ?? ""
            guard let text = files.withLock({ $0[version] }) else {
                return HTTPReply(HTTPResponse(status: .notFound))
            }
            return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text))
        }
        return configuration
    }

    private func network(_ file: TrustFile, _ store: (any SecretStore)? = nil) throws -> AssentNetwork {
        try configuration(file).network(keeping: store ?? self.store)
    }

    private func origins(_ keeper: TrustKeeper?, _ told: DeviceConfigurationKeeper?) throws -> TrustedPayloadOrigins {
        let (made, clock) = (made, servers.clock)
        return TrustedPayloadOrigins(try #require(keeper), told) { origin, keys in
            made.withLock { $0.append(keys.map { Base64URL.encode($0.key.bytes) }) }
            return PayloadOrigin(
                PayloadSettings(origin: origin, app: "app", version: "0", platform: "linux"), keys: keys,
                over: InMemoryTransport { _ in HTTPReply(HTTPResponse(status: .notFound)) },
                seams: PayloadSeams(clock: clock, random: SystemRandom()))
        }
    }

    /// Whether a call is sealed.
    private func seals(_ origins: TrustedPayloadOrigins) async throws -> Bool {
        let call = try HTTPCall(.get, url: SealedListener.origin + "/rates")
        return try await origins.origin(of: call, at: Origin(SealedListener.origin)) != nil
    }

    @Test("Other keys in a later file begin other sessions, and the same keys none")
    func otherKeys() async throws {
        let listeners = [SealedListener(), SealedListener(), SealedListener()]
        let (old, new) = (Array(listeners[..<2]), Array(listeners[1...]))
        let network = try network(try await file(1, mode: "always", old))
        let origins = try origins(network.keeper, nil)
        // The source has nothing yet.
        #expect(await network.keeper?.ask() == 1)
        for _ in 1...2 { #expect(try await seals(origins)) }
        #expect(made.withLock { $0 } == [old.map(\.publicKey)])
        servers.clock.advance(by: 3600)
        let second = try await file(2, mode: "always", new)
        files.withLock { $0["2"] = second.compact }
        #expect(await network.keeper?.ask() == 2)
        for _ in 1...2 { #expect(try await seals(origins)) }
        #expect(made.withLock { $0 } == [old, new].map { $0.map(\.publicKey) })
    }

    @Test("A file that comes into force while the server is asked is the one that seals, and not the one before")
    func meanwhile() async throws {
        let (old, new) = ([SealedListener(), SealedListener()], [SealedListener(), SealedListener()])
        let network = try network(try await file(1, mode: "server", old))
        let second = try await file(2, mode: "always", new)
        files.withLock { $0["2"] = second.compact }
        mayAnswer.update { $0 = false }
        whileAsked.withLock { [mayAnswer, keeper = network.keeper] in
            $0 = {
                mayAnswer.update { $0 = true }
                #expect(await keeper?.ask() == 2)
            }
        }
        #expect(try await seals(origins(network.keeper, network.told)))
        #expect(whileAsked.withLock { $0 == nil })
        #expect(made.withLock { $0 } == [new.map(\.publicKey)])
    }

    @Test("Where the server decides and nothing can be known of it, calls are sealed")
    func nothingKnown() async throws {
        let listeners = [SealedListener(), SealedListener()]
        let file = try await file(1, mode: "server", listeners)
        let network = try network(file)
        #expect(try await seals(origins(network.keeper, nil)))
        // The server does not answer.
        #expect(try await seals(origins(network.keeper, network.told)))
        // The vault says that a later file was in force, which is not there: nothing is in force for who decides.
        let name = "trust/" + Base64URL.encode(SHA2.sha256(Array(Self.audience.utf8)))
        let record: JSONValue = [
            "v": 1, "asked": .integer(servers.clock.epochSeconds), "audience": .string(Self.audience), "version": 5,
        ]
        let behind = MemorySecretStore(clock: servers.clock)
        try await behind.update(name, to: Secret(bytes: record.serializedBytes()), expected: .absent)
        let other = try self.network(file, behind)
        try await other.keeper?.settle()
        #expect(other.keeper?.inForce.content == nil)
        #expect(try await seals(origins(network.keeper, other.told)))
    }

    @Test("A vault that cannot be read may have an answer, so nothing is sent")
    func unreadable() async throws {
        let file = try await file(1, mode: "server", [SealedListener(), SealedListener()])
        let told = try network(file, UnreadableStore(base: store)).told
        let origins = try origins(network(file).keeper, told)
        await #expect(throws: HTTPTransportError(.trustExpired, "")) { try await seals(origins) }
        #expect(made.withLock { $0.isEmpty })
    }
}

import AssentConfiguration
import AssentCore
import AssentJOSE
import AssentServer
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentTrust

@Suite("assent doctor asks what the server tells an app with a trust file")
struct ToldConfigurationTests {
    private static let issuer = "https://am.bank.example/am/oauth2/alpha"
    private static let endpoint = issuer + "/device_config"

    private let clock = ManualClock()
    private let key: SoftwareSigningKey
    private let stranger: SoftwareSigningKey

    private var now: Int64 { clock.epochSeconds }

    init() throws {
        key = try .generate(.es256)
        stranger = try .generate(.es256)
    }

    private static func jwk(_ key: SoftwareSigningKey) throws -> JWK { try JWK(publicKeyInfo: key.publicKeyInfo) }

    private func sign(_ members: JSONObject, _ type: String, by signer: SoftwareSigningKey) async throws -> String {
        let header: JSONObject = ["typ": .string(type), "kid": .string(try Self.jwk(signer).thumbprint)]
        return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: signer)
    }

    /// Two payload keys, which end at a time.
    private func payload(_ mode: String, end: Int64? = nil) -> JSONValue {
        let end = end ?? now + 400 * 86_400
        let keys = (1...2).map { number -> JSONValue in
            let x = Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
            let kid = Base64URL.encode(SHA2.sha256(Array(#"{"crv":"X25519","kty":"OKP","x":"\#(x)"}"#.utf8)))
            return ["kid": .string(kid), "x": .string(x), "notAfter": .integer(end)]
        }
        return [
            "suite": "pe1", "mode": .string(mode), "keys": .array(keys), "origins": ["https://am.bank.example"],
        ]
    }

    private func trust(
        _ payload: JSONValue? = nil, development: Bool = false, host: String = "am.bank.example",
        issuer: String = issuer, at time: Int64? = nil
    ) async throws -> TrustFile {
        let now = time ?? now
        let pins = (1...2).map { number -> JSONValue in
            let digest = Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
            return ["spki": .string(digest), "notAfter": .integer(now + 400 * 86_400)]
        }
        var members: JSONObject = [
            "v": 1, "aud": "bank-app/linux/production", "version": 1, "iat": .integer(now),
            "keys": [try Self.jwk(key).json, try Self.jwk(stranger).json],
            "hosts": [["host": .string(host), "pins": .array(pins), "sends": ["user"]]],
            "issuer": .string(issuer),
            "identity": .string(Base64URL.encode([UInt8](repeating: 9, count: 32))),
            "config": [try Self.jwk(key).json],
            "controls": ["debugger": "refuse", "rooted": "report", "preload": "off"], "source": [],
        ]
        if let payload { members["payload"] = payload }
        if development { members["development"] = true }
        return try TrustFile(shipped: try await sign(members, "assent-trust+jwt", by: key))
    }

    private func document(
        _ changes: [String: JSONValue?] = [:], by signer: SoftwareSigningKey? = nil
    ) async throws -> String {
        var members: JSONObject = [
            "v": 1, "aud": "bank-app/linux/production", "app_version": "3.2.0", "version": 7, "iat": .integer(now),
            "exp": .integer(now + 300), "status": "enabled", "payloadEncryption": "on", "implicit": true,
            "stateless": true, "webLinks": [],
        ]
        for (name, value) in changes { members[name] = value }
        return try await sign(members, "assent-device-config+jwt", by: signer ?? key)
    }

    /// What the server answers the question with.
    private enum Server {
        case document(String)
        case status(Int)
        /// Its metadata does not say where to ask.
        case silent
        case down

        var transport: InMemoryTransport {
            InMemoryTransport { exchange in
                guard exchange.request.path?.hasSuffix("/.well-known/openid-configuration") == true else {
                    switch self {
                    case .document(let text): return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text))
                    case .status(let status): return HTTPReply(HTTPResponse(status: .init(code: status)))
                    case .silent, .down: throw HTTPTransportError(.connectFailed, "Nobody is there.")
                    }
                }
                switch self {
                case .down: throw HTTPTransportError(.connectFailed, "Nobody \u{1B}[31mis there.")
                case .silent: return .json(200, ["issuer": .string(ToldConfigurationTests.issuer)])
                case .document, .status:
                    return .json(
                        200,
                        [
                            "issuer": .string(ToldConfigurationTests.issuer),
                            "assent_device_config_endpoint": .string(ToldConfigurationTests.endpoint),
                        ])
                }
            }
        }
    }

    private func client(registers: Bool = true) -> ClientFile {
        var file = ClientFile(
            server: "https://am.bank.example/am", realm: "/alpha", cookieName: "session", clientID: "bank-app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login", resources: [],
            authority: nil, pins: [])
        if registers { file.registration = ClientFile.Registration(softwareVersion: "3.2.0") }
        return file
    }

    private func findings(
        _ server: Server, trust: TrustFile? = nil, client: ClientFile? = nil,
        stored: DeviceConfigurationLook.Stored? = nil
    ) async throws -> [Diagnosis] {
        var file = try await self.trust()
        if let trust { file = trust }
        return await DeviceConfigurationExamination(
            client: client ?? self.client(), trust: file, transport: server.transport, clock: clock, stored: stored
        ).findings()
    }

    /// That these are found, the last one with these words.
    private func expect(_ verdicts: [Diagnosis.Verdict], _ words: String, in found: [Diagnosis]) {
        #expect(found.map(\.verdict) == verdicts, "\(found)")
        #expect(found.last?.text.contains(words) == true, "\(words): \(found)")
    }

    @Test("What fits is fine, and says version, status and payload encryption")
    func fine() async throws {
        let trust = try await trust(payload("server"))
        let found = try await findings(.document(try await document()), trust: trust)
        expect([.fine], "is version 7: enabled, payloadEncryption on", in: found)
    }

    @Test(
        "A server that is down, or answers what no server should, is a note; none of its words reaches the terminal raw"
    )
    func unreachable() async throws {
        let down = try await findings(.down)
        expect([.note], "could not be looked at", in: down)
        #expect(down.allSatisfy { !$0.text.unicodeScalars.contains("\u{1B}") })
        expect([.note], "status 503", in: try await findings(.status(503)))
        expect([.note], "without a document", in: try await findings(.status(304)))
    }

    @Test("A realm that tells nothing is a problem for who registers, and a note for others")
    func untold() async throws {
        for server in [Server.silent, .status(404)] {
            expect([.problem], "has no deviceConfig", in: try await findings(server))
            let alone = client(registers: false)
            expect([.note], "has no deviceConfig", in: try await findings(server, client: alone))
        }
    }

    @Test("What the app would not take: an unknown key, a signature that is not good, another version, another time")
    func refused() async throws {
        let foreign = try await document(by: stranger)
        expect([.problem], "does not name its key in config", in: try await findings(.document(foreign)))
        // The same key in the header, and the other one's signature.
        let parts = (try await document()).split(separator: ".")
        let forged = "\(parts[0]).\(parts[1]).\(foreign.split(separator: ".")[2])"
        expect([.problem], "is not good", in: try await findings(.document(forged)))
        let other = try await document(["app_version": "3.1.0"])
        expect([.problem], "is for version 3.1.0", in: try await findings(.document(other)))
        let old = try await document(["iat": .integer(now - 5000), "exp": .integer(now - 4700)])
        expect([.problem], "is not of now", in: try await findings(.document(old)))
        expect([.problem], "is refused", in: try await findings(.document("none")))
    }

    @Test("One that is older than the last in the vault is a problem, and the same or a newer one is not")
    func older() async throws {
        let store = MemorySecretStore(clock: clock)
        let audience = "bank-app/linux/production"
        #expect(try await DeviceConfigurationLook.stored(for: audience, in: store) == nil)
        let record = DeviceConfigurationRecord(
            audience: audience, version: 7,
            document: try await document(["iat": .integer(now - 60), "exp": .integer(now + 240)]))
        try await store.update(
            DeviceConfigurationRecord.name(for: audience), to: record.secret, expected: .any)
        let stored = try #require(try await DeviceConfigurationLook.stored(for: audience, in: store))
        #expect(stored.version == 7)
        let trust = try await trust(payload("server"))
        for (version, isOld) in [(6, true), (7, false), (8, false)] {
            let found = try await findings(
                .document(try await document(["version": .integer(version)])), trust: trust, stored: stored)
            if isOld {
                expect([.problem], "Version 7 of the device configuration was in force", in: found)
            } else {
                expect([.fine], "is version \(version)", in: found)
            }
        }
    }

    @Test("Sealing: a switch that is off where somebody always seals, keys that have ended, and none at all")
    func sealing() async throws {
        let off = Server.document(try await document(["payloadEncryption": "off"]))
        let on = Server.document(try await document())
        let always = try await trust(payload("always"))
        let words = "payload.mode of the trust file is always"
        expect([.fine, .problem], words, in: try await findings(off, trust: always))
        expect([.fine], "payloadEncryption on", in: try await findings(on, trust: always))
        expect([.fine], "payloadEncryption off", in: try await findings(off, trust: try await trust(payload("server"))))
        var sealing = client()
        sealing.payloadEncryption = [.init(origin: "https://am.bank.example", keys: [])]
        expect([.fine, .problem], "of the client's file seals", in: try await findings(off, client: sealing))
        expect([.fine], "payloadEncryption on", in: try await findings(on, client: sealing))
        for mode in ["server", "always"] {
            let ended = try await trust(payload(mode, end: now))
            expect([.fine, .problem], "all payload keys", in: try await findings(on, trust: ended))
        }
        expect([.fine, .note], "the trust file has no payload keys", in: try await findings(on))
        expect([.fine], "payloadEncryption off", in: try await findings(off))
    }

    @Test("A server that is down leaves the question open, over the way that doctor takes, and nothing is called wrong")
    func down() async throws {
        let world = try DoctorPinTests.World()
        // Nobody listens there, and nobody gets it meanwhile.
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let client = world.directory + "/client.yaml"
        try Data(world.client(reserved.port, world.certificates.pins).yaml.utf8).write(to: URL(fileURLWithPath: client))
        let host = "localhost:\(reserved.port)"
        let file = try await trust(
            host: host, issuer: "https://\(host)/am/oauth2/alpha", at: SystemClock().epochSeconds)
        let path = world.directory + "/trust"
        try Data(file.compact.utf8).write(to: URL(fileURLWithPath: path))
        let found = await world.examination(profile: "default", file: client, trust: path, asking: true).findings()
        #expect(found.allSatisfy { $0.verdict != .problem }, "\(found)")
        let name = "the device configuration for version 0 of bank-app/linux/production could not be looked at"
        #expect(found.contains { $0.verdict == .note && $0.text.hasPrefix(name) }, "\(found)")
    }

    @Test("A version that is served no more, or registers no more, and an app for development in production")
    func permissions() async throws {
        let trust = try await trust(payload("server"))
        let cases: [([String: JSONValue?], Diagnosis.Verdict, String)] = [
            (["status": "disabled"], .problem, "call nothing any more (disabled)"),
            (["minimumVersion": "3.3"], .problem, "3.3 is the oldest"),
            (["status": "loginOnly"], .note, "register no more"),
        ]
        for (changes, verdict, words) in cases {
            let server = Server.document(try await document(changes))
            expect([.fine, verdict], words, in: try await findings(server, trust: trust))
        }
        let development = try await self.trust(payload("server"), development: true)
        let server = Server.document(try await document())
        expect([.fine, .problem], "one for development", in: try await findings(server, trust: development))
    }
}

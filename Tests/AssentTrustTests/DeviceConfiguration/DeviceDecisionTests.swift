import AssentCore
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentTrust

@Suite("35: A device configuration tightens what the trust file and the app say, and never loosens it")
struct DeviceDecisionTests {
    private static let links = ["https://bank.example/a", "https://bank.example/b"]

    private static let wishes: [DeviceDecision.Wishes] = [false, true].flatMap { implicit in
        [false, true].flatMap { stateless in
            [false, true].flatMap { seals in
                ([nil, [], [links[0]]] as [[String]?]).map { allowed in
                    DeviceDecision.Wishes(implicit: implicit, stateless: stateless, webLinks: allowed, seals: seals)
                }
            }
        }
    }

    /// All configurations but for what tells them apart in time.
    private static var configurations: [DeviceConfigurationContent] {
        var all: [DeviceConfigurationContent] = []
        for status in ServedStatus.allCases {
            for minimum in [nil, "3.2", "3.2.1"] as [String?] {
                for payload in ServedSwitch.allCases {
                    for implicit in [false, true] {
                        for stateless in [false, true] {
                            for webLinks in [[], [links[1]], links] {
                                all.append(
                                    configuration(status, minimum, payload, implicit, stateless, webLinks))
                            }
                        }
                    }
                }
            }
        }
        return all
    }

    private static func configuration(
        _ status: ServedStatus = .enabled, _ minimum: String? = nil, _ payload: ServedSwitch = .on,
        _ implicit: Bool = true, _ stateless: Bool = true, _ webLinks: [String] = links,
        audience: String = "bank-app/linux/production"
    ) -> DeviceConfigurationContent {
        DeviceConfigurationContent(
            audience: audience, appVersion: "3.2.0", version: 7, issuedAt: 1, expires: 301, status: status,
            minimumVersion: minimum.flatMap { DottedVersion($0) }, payloadEncryption: payload, implicit: implicit,
            stateless: stateless, webLinks: webLinks)
    }

    /// A trust file that leaves sealing to nobody, to the server, or to no one's choice.
    private static func trust(_ mode: PayloadMode?, development: Bool = false) async throws -> TrustContent {
        var changes: [String: JSONValue?] = [:]
        if let mode {
            let keys: [JSONValue] = (1...2).map { number in
                let x = [UInt8](repeating: UInt8(number) + 8, count: 32)
                let jwk: JSONValue = ["crv": "X25519", "kty": "OKP", "x": .string(Base64URL.encode(x))]
                let kid = Base64URL.encode(SHA2.sha256(jwk.serializedBytes()))
                return ["kid": .string(kid), "x": .string(Base64URL.encode(x)), "notAfter": 4_102_444_800]
            }
            changes["payload"] = [
                "suite": "pe1", "mode": .string(mode.rawValue), "keys": .array(keys),
                "origins": ["https://api.bank.example"],
            ]
        }
        if development { changes["development"] = true }
        return try TrustFile(shipped: try await TrustSamples().file(1, changes)).content
    }

    @Test("Over all settings, trust files and configurations, nothing is allowed that was not before")
    func never() async throws {
        var (decided, faults): (Int, [String]) = (0, [])
        for mode in [nil, PayloadMode.server, .always] {
            for isDevelopment in [false, true] {
                let trust = try await Self.trust(mode, development: isDevelopment)
                for wishes in Self.wishes {
                    for configuration in Self.configurations {
                        let made = DeviceDecision(
                            wishes, version: "3.2.0", trust: trust, configuration: configuration)
                        decided += 1
                        for (rule, holds) in Self.rules(made, wishes, mode, isDevelopment, configuration) where !holds {
                            faults.append("\(rule): \(wishes), \(configuration)")
                        }
                    }
                }
            }
        }
        #expect(faults.isEmpty, "\(faults.prefix(3))")
        #expect(decided == 6 * 24 * 216)
    }

    /// What holds for each decision, with a name.
    private static func rules(
        _ made: DeviceDecision, _ wishes: DeviceDecision.Wishes, _ mode: PayloadMode?, _ isDevelopment: Bool,
        _ configuration: DeviceConfigurationContent
    ) -> [(String, Bool)] {
        [
            ("the app forbids implicit", wishes.implicit || !made.implicit),
            ("the app forbids stateless", wishes.stateless || !made.stateless),
            ("the app limits links", wishes.webLinks.map { Set(made.webLinks).isSubset(of: $0) } ?? true),
            ("the app or the trust file seals", made.seals || !wishes.seals && mode != .always),
            ("the server forbids implicit", configuration.implicit || !made.implicit),
            ("the server forbids stateless", configuration.stateless || !made.stateless),
            ("the server limits links", Set(made.webLinks).isSubset(of: configuration.webLinks)),
            ("the server seals", made.seals || mode != .server || configuration.payloadEncryption == .off),
            ("only enabled versions register", configuration.status == .enabled || made.registers != .allowed),
            ("disabled versions do not call", configuration.status != .disabled || made.calls != .allowed),
            ("who may not call does not register", made.calls == .allowed || made.registers == made.calls),
            ("no development in production", !isDevelopment || made.calls == .development),
            ("old versions do not call", configuration.minimumVersion?.text != "3.2.1" || made.calls != .allowed),
        ]
    }

    @Test("What is allowed by all three is allowed")
    func allowed() async throws {
        let all = DeviceDecision.Wishes(implicit: true, stateless: true)
        let made = DeviceDecision(
            all, version: "3.2.0", trust: try await Self.trust(.server), configuration: Self.configuration())
        #expect(made.calls == .allowed && made.registers == .allowed && made.implicit && made.stateless)
        #expect(made.webLinks == Self.links && made.seals)
        let plain = DeviceDecision(
            all, version: "3.2.0", trust: try await Self.trust(.server),
            configuration: Self.configuration(.enabled, nil, .off))
        #expect(!plain.seals)
    }

    @Test("A version that may only sign in registers no more, and an old one calls no more")
    func versions() async throws {
        let wishes = DeviceDecision.Wishes(implicit: false, stateless: false)
        let trust = try await Self.trust(nil)
        for (version, minimum, isNew) in [
            ("3.2.0", "3.2", true), ("3.2", "3.2.0", true), ("3.10", "3.9", true), ("3.1.9", "3.2", false),
            ("3.2-beta", "3.2", false), ("", "0", false),
        ] {
            let made = DeviceDecision(
                wishes, version: version, trust: trust, configuration: Self.configuration(.enabled, minimum))
            #expect(made.calls == (isNew ? .allowed : .outdated), "\(version)")
        }
        let only = DeviceDecision(
            wishes, version: "3.2.0", trust: trust, configuration: Self.configuration(.loginOnly))
        #expect(only.calls == .allowed && only.registers == .outdated)
    }

    @Test("Where the server was never heard, nobody registers, and the safe side is taken")
    func unheard() async throws {
        for (mode, isSealed) in [(PayloadMode?.none, false), (.server, true), (.always, true)] {
            let made = DeviceDecision(
                .init(implicit: true, stateless: true), version: "3.2.0", trust: try await Self.trust(mode),
                configuration: nil)
            #expect(made.registers == .unknown && made.calls == .allowed)
            #expect(made.seals == isSealed)
            #expect(made.webLinks.isEmpty)
        }
    }

    @Test("An app for development is refused by a server of production, and by no other")
    func development() async throws {
        let trust = try await Self.trust(nil, development: true)
        let wishes = DeviceDecision.Wishes(implicit: true, stateless: true)
        for (audience, calls) in [
            ("bank-app/linux/production", DeviceDecision.Permission.development),
            ("bank-app/linux/staging", .allowed), ("bank-app/linux/preproduction", .allowed),
        ] {
            let made = DeviceDecision(
                wishes, version: "3.2.0", trust: trust, configuration: Self.configuration(audience: audience))
            #expect(made.calls == calls && made.registers == calls, "\(audience)")
        }
    }
}

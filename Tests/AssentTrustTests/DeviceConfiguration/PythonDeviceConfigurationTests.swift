import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Crypto
import Foundation
import TestSupport
import Testing

@testable import AssentTrust

/// `Tests/Payload/trust.py`, made from the page alone, as a second opinion.
@Suite("Device configurations against the implementation in Python", .enabled(if: PythonPeer.mustRun))
struct PythonDeviceConfigurationTests {
    private let samples: DeviceConfigurationSamples
    private let time = DeviceConfigurationSamples.time

    init() throws { samples = try DeviceConfigurationSamples() }

    private func answers(_ command: String, _ asked: [JSONValue]) throws -> [JSONValue] {
        let input = asked.flatMap { $0.serializedBytes() + [UInt8(ascii: "\n")] }
        let lines = try PythonPeer.run(script: "Payload/trust.py", [command], input: input).split(separator: "\n")
        try #require(lines.count == asked.count)
        return try lines.map { try JSONValue.parse(Array($0.utf8)) }
    }

    /// A document, when it comes, and which version was in force.
    private struct Case {
        let text: String
        var now = DeviceConfigurationSamples.time
        var reached = 0
    }

    /// The version that is in force then; `nil` when it is refused.
    private func judged(_ one: Case) throws -> Int? {
        var update = DeviceConfigurationUpdate(for: DeviceConfigurationSamples.app, keys: try samples.keys)
        _ = update.on(.loaded(nil, reached: one.reached), at: one.now)
        _ = update.on(.due, at: one.now)
        guard case .keep(let taken) = update.on(.answered(.document(one.text, tag: nil)), at: one.now) else {
            return nil
        }
        return taken.content.version
    }

    @Test("35: It takes and refuses the same documents as we do")
    func documents() async throws {
        let good = try await samples.document()
        var cases = [
            Case(text: good), Case(text: good, reached: 7), Case(text: good, reached: 8),
            Case(text: good, now: time - 600), Case(text: good, now: time - 601), Case(text: good, now: time + 899),
            Case(text: good, now: time + 900), Case(text: good + "."), Case(text: String(good.dropLast(2))),
            Case(text: try await samples.sign(samples.members(), by: samples.stranger)),
            Case(text: try await samples.sign(samples.members(), header: ["typ": "assent-trust+jwt"])),
            Case(text: try await samples.sign(samples.members(), header: ["more": 1])),
        ]
        let pins: [JSONValue] = [
            [
                "minLength": 6, "maxLength": 12, "sequences": false, "common": true, "history": 3, "minAge": 0,
                "maxAge": 0,
                "cache": 0, "minNumeric": 6,
            ],
            [
                "minLength": 13, "maxLength": 12, "sequences": false, "common": true, "history": 3, "minAge": 0,
                "maxAge": 0, "cache": 0,
            ],
            ["minLength": 6, "maxLength": 12], "6",
        ]
        let changes: [[String: JSONValue?]] =
            pins.map { ["pin": $0] } + [
                ["minimumVersion": JSONValue?.none], ["minimumVersion": "3..1"], ["minimumVersion": "1.2.3.4.5.6.7.8"],
                ["minimumVersion": "1.2.3.4.5.6.7.8.9"], ["minimumVersion": "0000000001"], ["more": 1], ["v": 2],
                ["v": true], ["aud": "bank-app/linux/staging"], ["aud": "a/b"], ["app_version": "3.2"],
                ["app_version": "3 2"], ["version": 0], ["status": "loginOnly"], ["status": "Enabled"],
                ["payloadEncryption": "off"], ["payloadEncryption": false], ["implicit": 1], ["stateless": "false"],
                ["webLinks": []], ["webLinks": ["a", "a"]], ["webLinks": ["a b"]], ["webLinks": ["ü"]],
                ["webLinks": [1]],
                ["exp": .integer(time)], ["exp": .integer(time + 1)], ["exp": .integer(time + 301)],
                ["iat": JSONValue?.none], ["status": .null], ["version": .integer(time + 86_400)],
                ["version": .integer(time + 86_401)],
            ]
        for change in changes { cases.append(Case(text: try await samples.document(7, change))) }
        let keys = JSONValue.array(try samples.keys.map(\.json))
        let app = DeviceConfigurationSamples.app
        let asked = cases.map { one -> JSONValue in
            [
                "keys": keys, "aud": .string(app.audience), "app_version": .string(app.version),
                "now": .integer(one.now), "reached": .integer(one.reached), "document": .string(one.text),
            ]
        }
        var taken = 0
        for (index, answer) in try answers("config", asked).enumerated() {
            let version = try judged(cases[index])
            #expect(answer["version"]?.integer.map { Int($0) } == version, "\(index): \(answer.serialized())")
            taken += version == nil ? 0 : 1
        }
        #expect(taken == 13, "of each kind there are some")
    }

    @Test("We take what it has signed")
    func signed() throws {
        let scalar = [UInt8](repeating: 7, count: 32)
        let theirs = try SoftwareSigningKey(
            algorithm: .es256,
            privateKey: Secret(bytes: P256.Signing.PrivateKey(rawRepresentation: scalar).derRepresentation))
        let asked: JSONValue = [
            "key": .string(Hex.encode(scalar)), "content": .object(samples.members()),
            "typ": .string(DeviceConfigurationContent.type),
        ]
        let text = try #require(try answers("sign", [asked]).first?["file"]?.string)
        let read = try DeviceConfiguration(
            text, keys: [try ProtocolKey(theirs)], for: DeviceConfigurationSamples.app)
        #expect(read.content.version == 7 && read.content.webLinks == ["https://bank.example/start"])
    }
}

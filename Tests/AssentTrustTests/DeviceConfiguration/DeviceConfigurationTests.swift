import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentTrust

@Suite("A device configuration is read strictly")
struct DeviceConfigurationTests {
    private let samples: DeviceConfigurationSamples

    init() throws { samples = try DeviceConfigurationSamples() }

    @Test("What was signed is read as it was written")
    func roundTrip() async throws {
        let members = samples.members()
        let read = try DeviceConfiguration(
            try await samples.sign(members), keys: samples.keys, for: DeviceConfigurationSamples.app)
        #expect(JSONValue.object(read.content.members) == .object(members))
        #expect(read.content.version == 7 && read.content.status == .enabled && read.content.implicit)
        #expect(try samples.refusal(try await samples.document(7, ["minimumVersion": JSONValue?.none])) == nil)
    }

    @Test(
        "Each member must be there, once, and must be what it should be",
        arguments: [
            "v", "aud", "app_version", "version", "iat", "exp", "status", "payloadEncryption", "implicit",
            "stateless", "webLinks",
        ])
    func members(name: String) async throws {
        let missing = try await samples.document(7, [name: JSONValue?.none])
        #expect(try samples.refusal(missing) != nil, "missing")
        for value: JSONValue in [.null, -1, "", [:], [1], .string(String(repeating: "a", count: 4000))] {
            #expect(try samples.refusal(try await samples.document(7, [name: value])) != nil, "\(value.serialized())")
        }
        let text = JSONValue.object(samples.members()).serialized()
        let value = try #require(samples.members()[name]).serialized()
        let twice = "{\"\(name)\":\(value)," + text.dropFirst()
        #expect(try samples.refusal(try await samples.sign(Array(twice.utf8))) != nil, "twice")
    }

    @Test(
        "Members that are not known, and values that are not allowed, are refused",
        arguments: [
            ("more", 1), ("v", 2), ("version", 0), ("version", 9_007_199_254_740_992), ("status", "asleep"),
            ("payloadEncryption", "maybe"), ("payloadEncryption", true), ("implicit", "true"), ("stateless", 0),
            ("minimumVersion", "3..0"), ("minimumVersion", "3.x"), ("minimumVersion", ""), ("minimumVersion", 3),
            ("minimumVersion", "1.2.3.4.5.6.7.8.9"), ("minimumVersion", "1234567890"), ("minimumVersion", .null),
            ("app_version", "3 2"), ("aud", "bank-app/linux"), ("aud", "bank-app/linux/production/x"),
            ("exp", .integer(DeviceConfigurationSamples.time)),
            ("exp", .integer(DeviceConfigurationSamples.time + 301)),
            ("pin", .null), ("pin", [:]), ("pin", "6"), ("pin", ["minLength": 6, "maxLength": 12]),
            ("pin", rules(["minLength": 3])), ("pin", rules(["minLength": 13])), ("pin", rules(["history": 25])),
            ("pin", rules(["common": "no"])), ("pin", rules(["more": 1])),
            ("webLinks", ["https://a.example", "https://a.example"]), ("webLinks", [""]), ("webLinks", "x"),
            ("webLinks", .array((0..<33).map { .string("https://a.example/\($0)") })),
        ] as [(String, JSONValue)])
    func values(name: String, value: JSONValue) async throws {
        #expect(try samples.refusal(try await samples.document(7, [name: value])) != nil)
    }

    /// Rules for a PIN, with changes.
    private static func rules(_ changes: [String: JSONValue] = [:]) -> JSONValue {
        var object: JSONObject = [
            "minLength": 6, "maxLength": 12, "minNumeric": 6, "sequences": false, "common": false, "history": 3,
            "minAge": 0, "maxAge": 0, "cache": 0,
        ]
        for (name, value) in changes { object[name] = value }
        return .object(object)
    }

    @Test("The rules for a PIN are read as they were written")
    func pin() async throws {
        let members = samples.members(7, ["pin": Self.rules()])
        let read = try DeviceConfiguration(
            try await samples.sign(members), keys: samples.keys, for: DeviceConfigurationSamples.app)
        #expect(read.content.pin?.minLength == 6 && read.content.pin?.least[.numeric] == 6)
        #expect(JSONValue.object(read.content.members) == .object(members))
    }

    @Test("It is for one app, platform, environment and version")
    func audience() async throws {
        for (name, value) in [
            ("aud", "bank-app/linux/staging"), ("aud", "bank-app/ios/production"), ("aud", "other/linux/production"),
            ("app_version", "3.2"), ("app_version", "3.2.1"),
        ] {
            let text = try await samples.document(7, [name: .string(value)])
            #expect(try samples.refusal(text) == .wrongAudience, "\(value)")
        }
    }

    @Test("Other keys, types, algorithms and headers are refused, and so is each changed character")
    func signatures() async throws {
        let members = samples.members()
        #expect(try samples.refusal(try await samples.sign(members, by: samples.stranger)) == .unknownKey)
        let named = try ProtocolKey(samples.key).thumbprint.text
        let forged = try await samples.sign(members, by: samples.stranger, header: ["kid": .string(named)])
        #expect(try samples.refusal(forged) == .invalidSignature)
        for type in ["assent-trust+jwt", "JWT", "Assent-Device-Config+jwt"] {
            let text = try await samples.sign(members, header: ["typ": .string(type)])
            #expect(try samples.refusal(text) == .wrongType, "\(type)")
        }
        #expect(try samples.refusal(try await samples.sign(members, header: ["more": 1])) == .malformed)
        #expect(try samples.refusal(try await samples.sign(members, header: ["kid": JSONValue?.none])) != nil)
        let header = Base64URL.encode(Array(#"{"alg":"none","typ":"assent-device-config+jwt","kid":"\#(named)"}"#.utf8))
        let good = try await samples.sign(members)
        let parts = good.split(separator: ".")
        let payload = try #require(parts.dropFirst().first)
        #expect(try samples.refusal("\(header).\(payload).") != nil)
        for index in stride(from: 0, to: good.utf8.count, by: 3) {
            var bytes = Array(good.utf8)
            bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            // The last character of a part has bits that stand for nothing; those must be zero.
            #expect(try samples.refusal(String(decoding: bytes, as: UTF8.self)) != nil, "\(index)")
        }
        for end in [0, 1, good.utf8.count / 2, good.utf8.count - 1] {
            #expect(try samples.refusal(String(good.prefix(end))) != nil)
        }
    }

    @Test("More than 64 KiB are not looked at")
    func size() throws {
        let text = String(repeating: "a", count: (64 << 10) + 1)
        #expect(try samples.refusal(text) == .tooLarge)
        #expect(try samples.refusal(String(text.dropFirst())) == .malformed)
    }

    @Test("Versions are compared by their numbers")
    func versions() throws {
        func version(_ text: String) throws -> DottedVersion { try #require(DottedVersion(text)) }
        #expect(try version("3.10") > version("3.9.9"))
        #expect(try version("3") == version("3.0.0"))
        #expect(try version("3.0.1") > version("3"))
        #expect(try version("0") < version("0.0.1"))
        #expect(try !(version("3.2") < version("3.2.0")))
        for text in ["", ".", "3.", ".3", "3..1", "-1", "+1", "v3", "3.1b", " 3", "٣", "1.1.1.1.1.1.1.1.1"] {
            #expect(DottedVersion(text) == nil, "\(text)")
        }
    }
}

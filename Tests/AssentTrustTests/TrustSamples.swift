import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentTrust

/// Keys and files for the tests of trust files.
struct TrustSamples {
    /// When the files are made: that of the manual clock's start.
    static let time = 1_767_225_600
    static let year = 365 * 86_400

    let first: SoftwareSigningKey
    let second: SoftwareSigningKey
    let stranger: SoftwareSigningKey

    init() throws {
        first = try .generate(.es256)
        second = try .generate(.es256)
        stranger = try .generate(.es256)
    }

    /// A pin that no other number has.
    static func pin(_ number: UInt8) -> String { Base64URL.encode([UInt8](repeating: number, count: 32)) }

    static func host(_ pins: [(UInt8, Int)], sends: [String] = ["user"]) -> JSONValue {
        host("api.bank.example", pins, sends: sends)
    }

    static func host(
        _ name: String, _ pins: [(UInt8, Int)], sends: [String] = ["user"]
    ) -> JSONValue {
        let pins = pins.map { JSONValue(dictionaryLiteral: ("spki", .string(pin($0))), ("notAfter", .integer($1))) }
        return ["host": .string(name), "pins": .array(pins), "sends": .array(sends.map(JSONValue.string))]
    }

    static func json(_ keys: [SoftwareSigningKey]) throws -> JSONValue {
        .array(try keys.map { try ProtocolKey($0).json })
    }

    /// The members of a version; `changes` sets or removes some.
    func members(
        _ version: Int, keys: [SoftwareSigningKey]? = nil, _ changes: [String: JSONValue?] = [:]
    ) throws -> JSONObject {
        let (time, year) = (Self.time, Self.year)
        var object: JSONObject = [
            "v": 1, "aud": "bank-app/linux/production", "version": .integer(version),
            "iat": .integer(time + version), "keys": try Self.json(keys ?? [first, second]),
            "hosts": [Self.host([(1, time + year), (2, time + 2 * year)], sends: ["user", "device"])],
            "issuer": "https://am.bank.example/am/oauth2/alpha", "identity": .string(Self.pin(9)),
            "config": try Self.json([stranger]),
            "controls": ["debugger": "refuse", "rooted": "report", "preload": "off"],
            "source": ["https://trust.bank.example/app"],
        ]
        for (name, value) in changes { object[name] = value }
        return object
    }

    func sign(
        _ members: JSONObject, by key: SoftwareSigningKey? = nil, header changes: [String: JSONValue?] = [:]
    ) async throws -> String {
        let key = key ?? first
        var header: JSONObject = [
            "typ": "assent-trust+jwt", "kid": .string(try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint),
        ]
        for (name, value) in changes { header[name] = value }
        return try await JWS.sign(JSONValue.object(members).serializedBytes(), header: header, with: key)
    }

    /// A version, signed by the first key.
    func file(_ version: Int, _ changes: [String: JSONValue?] = [:]) async throws -> String {
        try await sign(try members(version, changes))
    }

    /// The versions from one to another, by their numbers.
    func chain(_ versions: ClosedRange<Int>) async throws -> [Int: String] {
        var files: [Int: String] = [:]
        for version in versions { files[version] = try await file(version) }
        return files
    }
}

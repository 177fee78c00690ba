import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTokens
import Foundation
import Testing

@testable import AssentTrust

@Suite("A trust file is read strictly and follows the one before")
struct TrustFileTests {
    private let samples: TrustSamples

    init() throws { samples = try TrustSamples() }

    private func code(_ text: String) -> TrustFileError.Code? {
        do throws(TrustFileError) {
            _ = try TrustFile(shipped: text)
            return nil
        } catch {
            return error.code
        }
    }

    private func code(_ text: String, after file: TrustFile) -> TrustFileError.Code? {
        do throws(TrustFileError) {
            _ = try file.successor(text)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("What was signed is read as it was written")
    func roundTrip() async throws {
        let text = try await samples.file(3)
        let file = try TrustFile(shipped: text)
        #expect(file.version == 3 && file.audience == "bank-app/linux/production" && file.compact == text)
        #expect(JSONValue.object(file.content.members) == .object(try samples.members(3)))
        let again = try await TrustFile.sign(file.content, with: samples.first)
        #expect(again.content == file.content && again.signer == file.signer)
    }

    @Test(
        "Each member must be there, and must be what it should be",
        arguments: [
            "v", "aud", "version", "iat", "keys", "hosts", "issuer", "identity", "config", "controls", "source",
        ])
    func members(name: String) async throws {
        #expect(code(try await samples.file(1, [name: JSONValue?.none])) != nil, "missing")
        for value: JSONValue in [.null, true, -1, "", [], [:], [1], ["a"], .string(String(repeating: "a", count: 600))]
        {
            if name == "source", value == [] { continue }
            #expect(code(try await samples.file(1, [name: value])) != nil, "\(value.serialized())")
        }
    }

    @Test(
        "Members that are not known, and values that are not allowed, are refused",
        arguments: [
            ("more", 1), ("exp", "soon"), ("exp", 1), ("development", false), ("version", 0),
            ("version", 2_147_483_649),
            ("aud", "bank-app/linux"), ("aud", "bank-app//production"), ("aud", "a/b/c/d"), ("aud", "a/b/c d"),
            ("issuer", "http://am.bank.example"), ("issuer", "https://am.bank.example/"), ("identity", "AAAA"),
            ("source", ["http://trust.bank.example"]), ("source", ["https://a.example", "https://a.example"]),
            ("source", ["https://a.example", "https://b.example", "https://c.example", "https://d.example"]),
            ("controls", ["debugger": "refuse", "rooted": "refuse"]),
            ("controls", ["debugger": "maybe", "rooted": "refuse", "preload": "off"]),
            ("controls", ["debugger": "off", "rooted": "off", "preload": "off", "camera": "off"]),
            ("hosts", [TrustSamples.host([(1, 5), (1, 5)])]),
            ("hosts", [TrustSamples.host([(1, 5), (2, 5)]), TrustSamples.host([(3, 5), (4, 5)])]),
            ("hosts", [TrustSamples.host([(1, 5)])]),
            ("hosts", [TrustSamples.host("API.bank.example", [(1, 5), (2, 5)])]),
            ("hosts", [TrustSamples.host("https://a.example", [(1, 5), (2, 5)])]),
            ("hosts", [TrustSamples.host("a.example:0443", [(1, 5), (2, 5)])]),
            ("hosts", [TrustSamples.host([(1, 5), (2, 5)], sends: ["nobody"])]),
            ("hosts", [TrustSamples.host([(1, 5), (2, 5)], sends: ["user", "user"])]),
            ("payload", ["suite": "pe2", "mode": "always", "keys": [], "origins": []]),
        ] as [(String, JSONValue)])
    func values(name: String, value: JSONValue) async throws {
        #expect(code(try await samples.file(1, [name: value])) != nil)
    }

    @Test("Fewer than two keys, a key twice, a private key, and a key with a member too many are refused")
    func keys() async throws {
        let one = try TrustSamples.json([samples.first]).array ?? []
        var extra = one.first?.object ?? JSONObject()
        extra["use"] = "sig"
        var secret = one.first?.object ?? JSONObject()
        secret["d"] = .string(TrustSamples.pin(3))
        let two = try TrustSamples.json([samples.second]).array ?? []
        for keys in [one, one + one, two + [.object(extra)], two + [.object(secret)]] {
            #expect(code(try await samples.file(1, ["keys": .array(keys)])) == .invalidMember)
        }
    }

    @Test("A member that occurs twice is refused, at every depth")
    func twice() async throws {
        let text = JSONValue.object(try samples.members(1)).serialized()
        for (name, again) in [
            ("\"v\":1", "\"v\":1,\"v\":1"), ("\"rooted\":\"report\"", "\"rooted\":\"off\",\"rooted\":\"off\""),
        ] {
            let changed = text.replacing(name, with: again)
            #expect(changed != text)
            let kid = try JWK(publicKeyInfo: samples.first.publicKeyInfo).thumbprint
            let header: JSONObject = ["typ": "assent-trust+jwt", "kid": .string(kid)]
            let signed = try await JWS.sign(Array(changed.utf8), header: header, with: samples.first)
            #expect(code(signed) == .malformed)
        }
    }

    private typealias Variant = (name: String, value: JSONValue)

    /// A document with one change each: at every depth a member that is missing, there twice, of another type, or not
    /// known.
    private static func variants(of value: JSONValue, at path: String = "") -> [Variant] {
        var found: [Variant] = []
        if let array = value.array {
            for (index, element) in array.enumerated() {
                for variant in variants(of: element, at: "\(path)[\(index)]") {
                    var elements = array
                    elements[index] = variant.value
                    found.append((variant.name, .array(elements)))
                }
            }
        }
        guard let members = value.object?.members else { return found }
        func add(_ name: String, _ members: [JSONObject.Member]) {
            found.append(("\(path).\(name)", .object(JSONObject(members))))
        }
        add("more", members + [JSONObject.Member(name: "more", value: 1)])
        for (index, member) in members.enumerated() {
            add("\(member.name) twice", members + [member])
            if !["exp", "payload", "development"].contains(member.name) {
                add("\(member.name) missing", Array(members[..<index] + members[(index + 1)...]))
            }
            let others: [JSONValue] = [.null, true, -1, [[:]], ["x": 1]]
            var changed = others.filter { $0 != member.value }.map { (name: $0.serialized(), value: $0) }
            changed += variants(of: member.value)
            for variant in changed {
                var all = members
                all[index].value = variant.value
                add("\(member.name) \(variant.name)", all)
            }
        }
        return found
    }

    @Test("At every depth a member that is missing, there twice, of another type or not known makes it refused")
    func everyMember() async throws {
        let end = TrustSamples.time + TrustSamples.year
        let keys = [UInt8(1), 2].map { number -> JSONValue in
            let x = TrustSamples.pin(number)
            let kid = Base64URL.encode(SHA2.sha256(Array(#"{"crv":"X25519","kty":"OKP","x":"\#(x)"}"#.utf8)))
            return ["kid": .string(kid), "x": .string(x), "notAfter": .integer(end)]
        }
        let payload: JSONValue = [
            "suite": "pe1", "mode": "server", "keys": .array(keys), "origins": ["https://api.bank.example"],
        ]
        let whole = try samples.members(1, ["payload": payload, "exp": .integer(end), "development": true])
        #expect(code(try await samples.sign(whole)) == nil, "the control")
        let variants = Self.variants(of: .object(whole))
        #expect(variants.count > 250, "\(variants.count)")
        for (name, value) in variants {
            let members = try #require(value.object)
            #expect(code(try await samples.sign(members)) != nil, "\(name)")
        }
    }

    @Test("Another typ or algorithm, a header member too many and none at all are refused")
    func header() async throws {
        let members = try samples.members(1)
        for typ: JSONValue? in ["tsp-login+jwt", "JWT", "ASSENT-TRUST+JWT", nil] {
            #expect(code(try await samples.sign(members, header: ["typ": typ])) == .wrongType)
        }
        for changes: [String: JSONValue?] in [["kid": JSONValue?.none], ["kid": "first"], ["cty": "json"]] {
            #expect(code(try await samples.sign(members, header: changes)) == .malformed)
        }
        let payload = Base64URL.encode(JSONValue.object(members).serializedBytes())
        let none = Base64URL.encode(Array(#"{"alg":"none","typ":"assent-trust+jwt","kid":"a"}"#.utf8))
        #expect(code("\(none).\(payload).") == .wrongType)
        let other = try SoftwareSigningKey.generate(.edDSA)
        #expect(code(try await samples.sign(members, by: other)) == .wrongType)
    }

    @Test("64 KiB is the most, and what is no JWS is refused")
    func bounds() async throws {
        #expect(code(String(repeating: "a", count: TrustFile.limit + 1)) == .tooLarge)
        let text = try await samples.file(1)
        for other in ["", ".", "..", "\(text)\n", " \(text)", "\(text).", String(text.dropLast(2))] {
            #expect(code(other) != nil, "\(other.count)")
        }
    }

    @Test("A changed byte anywhere is refused")
    func changed() async throws {
        let shipped = try TrustFile(shipped: try await samples.file(1))
        let text = Array(try await samples.file(2).utf8)
        for index in stride(from: 0, to: text.count, by: 7) {
            var other = text
            other[index] = other[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(code(String(decoding: other, as: UTF8.self), after: shipped) != nil, "\(index)")
        }
    }

    @Test("34: a gap, a skipped key, a foreign audience, an older version and another signer are refused")
    func successors() async throws {
        let third = try SoftwareSigningKey.generate(.es256)
        let shipped = try TrustFile(shipped: try await samples.file(4))
        #expect(code(try await samples.file(5), after: shipped) == nil)
        #expect(code(try await samples.sign(try samples.members(5), by: samples.second), after: shipped) == nil)
        #expect(code(try await samples.file(6), after: shipped) == .wrongVersion)
        #expect(code(try await samples.file(4), after: shipped) == .wrongVersion)
        #expect(code(try await samples.file(3), after: shipped) == .wrongVersion)
        for aud: JSONValue in ["bank-app/linux/test", "bank-app/ios/production", "other/linux/production"] {
            #expect(code(try await samples.file(5, ["aud": aud]), after: shipped) == .wrongAudience)
        }
        #expect(code(try await samples.file(5, ["iat": .integer(TrustSamples.time)]), after: shipped) == .wrongTime)
        // The key is named by the file that it signs, but not by the one before.
        let own = try await samples.sign(try samples.members(5, keys: [third, samples.first]), by: third)
        #expect(code(own, after: shipped) == .unknownKey)
        let five = try shipped.successor(
            try await samples.sign(try samples.members(5, keys: [third, samples.second])))
        #expect(code(try await samples.sign(try samples.members(6), by: third), after: five) == nil)
        #expect(code(try await samples.file(6), after: five) == .unknownKey)
        let kid = JSONValue.string(try JWK(publicKeyInfo: samples.first.publicKeyInfo).thumbprint)
        let forged = try await samples.sign(try samples.members(5), by: samples.stranger, header: ["kid": kid])
        #expect(code(forged, after: shipped) == .invalidSignature)
    }

    @Test("Pins end one by one, a clock that was put back revives none, and an expired file has none")
    func time() async throws {
        let (time, year) = (TrustSamples.time, TrustSamples.year)
        let file = try TrustFile(shipped: try await samples.file(1, ["exp": .integer(time + 3 * year)]))
        let (one, other) = (
            try Pin(sha256: [UInt8](repeating: 1, count: 32)), try Pin(sha256: [UInt8](repeating: 2, count: 32))
        )
        #expect(file.pins(at: time) == ["api.bank.example": .pins([one, other])])
        #expect(file.pins(at: time + year) == ["api.bank.example": .singlePin(other)])
        #expect(file.pins(at: time + 2 * year) == [:])
        #expect(!file.hasExpired(at: time + 3 * year - 1) && file.hasExpired(at: time + 3 * year))
        #expect(file.now(Date(timeIntervalSince1970: 0)) == time + 1)
        #expect(file.now(Date(timeIntervalSince1970: -5e40)) == time + 1 && file.now(.distantFuture) > time)
        #expect(file.nextEnd(after: time) == time + year && file.nextEnd(after: time + 3 * year) == nil)
    }

    @Test("An entry with a port is about that port alone, and a host that is not named gets nothing")
    func hosts() async throws {
        let pins: [(UInt8, Int)] = [(1, TrustSamples.time + 9), (2, TrustSamples.time + 9)]
        let hosts: JSONValue = [
            TrustSamples.host("a.example", pins), TrustSamples.host("a.example:8443", pins, sends: ["device"]),
            TrustSamples.host("b.example", pins, sends: []),
        ]
        let file = try TrustFile(shipped: try await samples.file(1, ["hosts": hosts]))
        #expect(file.kinds(of: try Origin("https://a.example")) == [.user])
        #expect(file.kinds(of: try Origin("https://a.example:8443")) == [.device])
        #expect(file.kinds(of: try Origin("https://a.example:9443")) == nil)
        #expect(file.kinds(of: try Origin("https://b.example")) == [])
        #expect(file.kinds(of: try Origin("http://a.example")) == nil)
        #expect(file.kinds(of: try Origin("https://c.example")) == nil)
        #expect(file.host(of: try Origin("https://a.example:9443"))?.host == "a.example")
    }
}

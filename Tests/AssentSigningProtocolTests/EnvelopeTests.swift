import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Crypto
import TestSupport
import Testing

@Suite("Transaction signing: encrypted messages")
struct EnvelopeTests {
    let key = SoftwareAgreementKey.generate()

    func seal(_ text: String = "{}", header edit: (inout JSONObject) -> Void = { _ in }) async throws -> String {
        let compact = try SealedEnvelope.seal(
            Array(text.utf8), to: ProtocolKey(key), content: .request, sender: "device", recipient: "server")
        var header = try CompactParts(compact).object(0)
        edit(&header)
        guard let x = header["epk"]?["x"], x == (try CompactParts(compact).object(0))["epk"]?["x"] else {
            return try replaced(header, in: compact)
        }
        return header == (try CompactParts(compact).object(0)) ? compact : try replaced(header, in: compact)
    }

    private func replaced(_ header: JSONObject, in compact: String) throws -> String {
        var parts = try CompactParts(compact)
        parts.parts[0] = JSONValue.object(header).serializedBytes()
        return parts.text
    }

    func open(_ compact: String, sender: String = "device", recipient: String = "server") async throws -> String {
        String(
            decoding: try await SealedEnvelope(compact).opened(
                with: key, content: .request, sender: sender, recipient: recipient), as: UTF8.self)
    }

    @Test("What is sealed is opened by its recipient, and names the right parties")
    func roundTrip() async throws {
        let compact = try await seal(#"{"wait":25}"#)
        #expect(try await open(compact) == #"{"wait":25}"#)
        #expect(try SealedEnvelope(compact).kid == ProtocolKey(key).thumbprint)
        let header = try CompactParts(compact).object(0)
        #expect(header["apu"] == .string(Base64URL.encode(Array("device".utf8))))
        #expect(header["apv"] == .string(Base64URL.encode(Array("server".utf8))))
    }

    @Test("Another sender, recipient, key or content is refused before anything is decrypted")
    func parties() async throws {
        let compact = try await seal()
        await #expect(throws: SigningProtocolError(.wrongRecipient, "")) { try await open(compact, sender: "other") }
        await #expect(throws: SigningProtocolError(.wrongRecipient, "")) { try await open(compact, recipient: "other") }
        await #expect(throws: SigningProtocolError(.wrongRecipient, "")) {
            try await SealedEnvelope(compact).opened(
                with: key, content: .reply, sender: "device", recipient: "server")
        }
        await #expect(throws: SigningProtocolError(.wrongRecipient, "")) {
            try await SealedEnvelope(compact).opened(
                with: SoftwareAgreementKey.generate(), content: .request, sender: "device", recipient: "server")
        }
    }

    /// The bits of a byte that are tried: one, or all of them in a soak.
    private static func bits(_ index: Int) -> Range<Int> { Soak.isOn ? 0..<8 : index % 8..<index % 8 + 1 }

    @Test("A changed bit anywhere is refused")
    func bits() async throws {
        let parts = try CompactParts(await seal(#"{"a":"0123456789"}"#))
        for part in [0, 2, 3, 4] {
            for index in parts.parts[part].indices {
                for bit in Self.bits(index) {
                    var changed = parts
                    changed.parts[part][index] ^= 1 << UInt8(bit)
                    await #expect(throws: (any Error).self, "part \(part), byte \(index), bit \(bit)") {
                        try await open(changed.text)
                    }
                }
            }
        }
    }

    @Test("Bits of the published requests and replies are refused, too")
    func vectorBits() async throws {
        let vectors = try Vectors.load()
        let did = try vectors.message("offer", as: Offer.self).content.did.text
        let names = vectors.values.keys.filter { $0.hasSuffix(" body") || $0.hasSuffix(" reply") }
        #expect(names.count == 13)
        let device = try vectors.publicKey("device").thumbprint.text
        for name in names {
            let isReply = name.hasSuffix("reply")
            let party = name == "start body" ? device : did
            let recipient = try vectors.agreementKey(isReply ? "transport" : "encryption")
            let parts = try CompactParts(vectors.text(name))
            for part in [0, 2, 3, 4] {
                for index in stride(from: 0, to: parts.parts[part].count, by: Soak.isOn ? 1 : 11) {
                    for bit in Self.bits(index) {
                        var changed = parts
                        changed.parts[part][index] ^= 1 << UInt8(bit)
                        await #expect(throws: (any Error).self, "\(name), part \(part), byte \(index), bit \(bit)") {
                            try await SealedEnvelope(changed.text).opened(
                                with: recipient, content: isReply ? .reply : .request,
                                sender: isReply ? vectors.issuer : party,
                                recipient: isReply ? did : vectors.issuer)
                        }
                    }
                }
            }
        }
    }

    @Test("A header that is not exactly the one of the protocol is refused")
    func headers() async throws {
        let other = try #require(
            JWK(publicKeyInfo: SoftwareSigningKey.generate(.es384).publicKeyInfo).json.object)
        let good = try CompactParts(await seal()).object(0)
        let epk = try #require(good["epk"]?.object)
        var offCurve = epk
        offCurve["y"] = epk["x"]
        var more = epk
        more["kid"] = "a"
        var infinity = epk
        infinity["x"] = .string(Base64URL.encode([UInt8](repeating: 0, count: 32)))
        infinity["y"] = infinity["x"]
        let variants: [(String, JSONValue?)] = [
            ("alg", "ECDH-ES+A256KW"), ("alg", "dir"), ("alg", "RSA-OAEP-256"), ("alg", "none"), ("alg", nil),
            ("enc", "A128GCM"), ("enc", "A128CBC-HS256"), ("enc", nil), ("cty", nil), ("cty", "JSON"), ("cty", "JWT"),
            ("kid", nil), ("kid", "../key"), ("apu", nil), ("apv", nil), ("apu", ""), ("epk", nil),
            ("epk", .object(other)), ("epk", .object(offCurve)), ("epk", .object(more)), ("epk", .object(infinity)),
            ("typ", "JWE"), ("zip", "DEF"), ("crit", ["zip"]), ("p2c", 1), ("jku", "https://evil.example"),
        ]
        for (name, value) in variants {
            let compact = try await seal { $0[name] = value }
            await #expect(throws: SigningProtocolError.self, "\(name): \(value?.serialized() ?? "absent")") {
                try await open(compact)
            }
        }
    }

    @Test("Texts that are cut off, extended or too long are refused")
    func lengths() async throws {
        let compact = try await seal()
        for text in [
            "", "....", compact + ".", compact + "=", compact + " ", String(compact.dropLast()),
            String(compact.dropFirst()),
            compact.replacing("..", with: ".AAAA."), String(repeating: "A", count: 70_000),
        ] {
            await #expect(throws: SigningProtocolError.self) { try await open(text) }
        }
        #expect(throws: SigningProtocolError(.tooLarge, "")) {
            try SealedEnvelope.seal(
                [UInt8](repeating: 0x20, count: 50 << 10), to: ProtocolKey(key), content: .request, sender: "a",
                recipient: "b")
        }
    }
}

import AssentCore
import AssentTesting
import Foundation
import Testing

@Suite("Base64URL")
struct Base64URLTests {
    @Test(
        "The vectors of RFC 4648 §10, without padding",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ])
    func vectors(plain: String, encoded: String) {
        #expect(Base64URL.encode(Array(plain.utf8)) == encoded)
        #expect(Base64URL.decode(encoded) == Array(plain.utf8))
    }

    @Test("The alphabet is that of URLs")
    func alphabet() {
        #expect(Base64URL.encode([0xFB, 0xFF, 0xBF]) == "-_-_")
        #expect(Base64URL.decode("-_-_") == [0xFB, 0xFF, 0xBF])
    }

    @Test(
        "What is not the one text of some bytes is refused",
        arguments: [
            "A", "AAAAA", "Zh", "Zm9", "Zg==", "Zg=", "=", "Zm 8", "Zm8\n", " Zm8", "Zm9v+", "Zm9v/w", "Zm9v.", "Zm9vé",
            "Zm9\u{0}", "AB", "AAB",
        ])
    func refused(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test("At each place the alphabet's characters are read, and no other byte is")
    func characters() {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for count in [2, 3, 4, 6, 7, 8] {
            for place in 0..<count {
                for byte in UInt8.min...UInt8.max {
                    var text = [UInt8](repeating: UInt8(ascii: "A"), count: count)
                    text[place] = byte
                    // Bits of the last character that no byte has are zero.
                    let unit = place < count - 1 ? 1 : [1, 1, 16, 4][count % 4]
                    let isRead = alphabet.firstIndex(of: byte).map { $0.isMultiple(of: unit) } ?? false
                    let decoded = Base64URL.decode(Substring(decoding: text, as: UTF8.self))
                    #expect((decoded != nil) == isRead, "\(byte) at \(place) of \(count)")
                    if let decoded { #expect(Array(Base64URL.encode(decoded).utf8) == text) }
                }
            }
        }
    }

    @Test("Any bytes survive, and Foundation writes the same")
    func roundTrip() {
        let random = SeededRandom(seed: 7)
        for length in 0..<200 {
            let bytes = random.bytes(length)
            let text = Base64URL.encode(bytes)
            #expect(Base64URL.decode(text) == bytes)
            let standard = Data(bytes).base64EncodedString().filter { $0 != "=" }
            #expect(text == String(standard.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }))
        }
    }

    @Test("What is appended is what Foundation writes, behind what was there, and Foundation's text is read back")
    func appended() {
        let random = SeededRandom(seed: 9)
        for length in 0...100 {
            let bytes = random.bytes(length)
            var text = Array("before.".utf8)
            Base64URL.append(bytes, to: &text)
            let standard = Data(bytes).base64EncodedString().filter { $0 != "=" }
            let expected = String(standard.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
            #expect(String(decoding: text, as: UTF8.self) == "before." + expected)
            #expect(Base64URL.length(of: length) == expected.utf8.count)
            #expect(Base64URL.encode(bytes[...]) == expected)
            #expect(Base64URL.decode(expected) == bytes)
        }
    }

    @Test("Every text is refused or the one that encoding gives")
    func canonical() throws {
        let random = SeededRandom(seed: 8)
        Mutations.of((1..<20).map { Base64URL.encode(random.bytes($0)) }, count: 4000) { text in
            if let bytes = Base64URL.decode(text) { #expect(Base64URL.encode(bytes) == text) }
        }
    }
}

@Suite("Hex")
struct HexTests {
    @Test(
        "The vectors of RFC 4648 §10",
        arguments: [("", ""), ("f", "66"), ("fo", "666f"), ("foo", "666f6f"), ("foobar", "666f6f626172")])
    func vectors(plain: String, encoded: String) {
        #expect(Hex.encode(Array(plain.utf8)) == encoded)
        #expect(Hex.decode(encoded) == Array(plain.utf8))
        #expect(Hex.decode(encoded.uppercased()) == Array(plain.utf8))
    }

    @Test("Every byte survives")
    func allBytes() {
        let bytes = (0...255).map { UInt8($0) }
        #expect(Hex.decode(Hex.encode(bytes)) == bytes)
    }

    @Test(
        "Anything else is refused",
        arguments: ["0", "000", "0g", "g0", "0x", " 00", "00 ", "-1", "+1", "é", "\u{FF10}\u{FF10}"])
    func refused(text: String) {
        #expect(Hex.decode(text) == nil)
    }
}

@Suite("Pin")
struct PinTests {
    @Test("A pin reads as it is written, with and without its prefix")
    func roundTrip() throws {
        let pin = try Pin(publicKeyInfo: Array("key".utf8))
        #expect(pin.description == "sha256/LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM=")
        #expect(try Pin(pin.description) == pin)
        #expect(try Pin(String(pin.description.dropFirst(7))) == pin)
        #expect(try Pin(sha256: pin.sha256) == pin)
        #expect(pin.sha256.count == 32)
    }

    @Test("The digest of nothing is refused in each form: it is what a failed command prints")
    func digestOfNothing() {
        let text = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
        expectExactly(PinError.digestOfNothing) { try Pin(text) }
        expectExactly(PinError.digestOfNothing) { try Pin("sha256/" + text) }
        expectExactly(PinError.digestOfNothing) { try Pin(publicKeyInfo: []) }
    }

    @Test(
        "What is no SHA-256 is refused",
        arguments: [
            ("", .wrongLength(0)), ("sha256/", .wrongLength(0)), ("AAAA", .wrongLength(3)), ("!", .notBase64),
            ("sha1:LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM=", .notBase64),
            ("LHDhK3oGRvkiefQnx7OOczTY5Tic/xZ6HcMOc/gmtoM", .notBase64),
        ] as [(String, PinError)])
    func refused(text: String, error: PinError) {
        expectExactly(error) { try Pin(text) }
    }
}

import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

@Suite("QR codes in the terminal")
struct QRCodeTests {
    /// What a program that we did not write reads in the drawing.
    private func read(_ lines: [String]) throws -> String {
        var rows: [String] = []
        for line in lines {
            rows.append(line.map { "█▀".contains($0) ? "0" : "1" }.joined(separator: " "))
            rows.append(line.map { "█▄".contains($0) ? "0" : "1" }.joined(separator: " "))
        }
        // A pixel for each module is too small for a reader.
        let scale = 4
        let wide = rows.map { row in
            row.split(separator: " ").map { String(repeating: "\($0) ", count: scale) }.joined()
        }
        let width = (lines.first?.count ?? 0) * scale
        let image =
            "P1\n\(width) \(rows.count * scale)\n"
            + wide.map { String(repeating: $0 + "\n", count: scale) }.joined()
        let file = NSTemporaryDirectory() + "/assent-qr-" + SystemRandom().token(byteCount: 9) + ".pbm"
        try Data(image.utf8).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        let result = try FinishedProcess.run(
            "/usr/bin/zbarimg", ["--quiet", "--raw", "-S*.disable", "-Sqrcode.enable", file],
            environment: ["PATH": "/usr/bin:/bin"])
        return String(decoding: result.output.dropLast(), as: UTF8.self)
    }

    @Test("A reader that we did not write reads what the drawing says, at every version")
    func read() throws {
        for count in [1, 17, 40, 78, 106, 134, 154, 192, 230, 271, 321, 367, 425, 458, 520, 586, 644, 718, 792, 858] {
            let alphabet = Array("otpauth:/?=&%AZ09")
            let text = String((0..<count).map { alphabet[$0 * $0 % alphabet.count] })
            let code = try #require(QRCode(text), "\(count)")
            #expect(try read(code.lines(colours: false)) == text, "\(count) bytes, \(code.size) modules")
        }
    }

    @Test("What has no room gives no code, and colours change no module")
    func bounds() throws {
        #expect(QRCode(String(repeating: "a", count: 859)) == nil)
        let code = try #require(QRCode("otpauth://totp/Assent:ana?secret=AAAA"))
        let plain = code.lines(colours: false)
        #expect(code.lines(colours: true) == plain.map { "\u{1B}[97;40m\($0)\u{1B}[0m" })
        #expect(plain.count == (code.size + 9) / 2 && plain.allSatisfy { $0.count == code.size + 8 })
    }
}

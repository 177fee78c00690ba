import Foundation
import Testing

@testable import AssentTransportNIO

@Suite("Why a server is not trusted is said in words that fit on a line")
struct TrustFailureTests {
    @Test("A long text of the library keeps its beginning and its end, and nothing that could move a terminal's cursor")
    func longText() {
        let quoted =
            "RFC5280Policy: Certificate " + String(repeating: "\u{1B}[31mx", count: 200) + " is not marked as a CA"
        let text = TrustFailure.library(quoted).description
        #expect(text.hasPrefix("RFC5280Policy: Certificate "))
        #expect(text.hasSuffix(" is not marked as a CA"))
        #expect(text.utf8.count < 256 && !text.utf8.contains(0x1B))
    }

    @Test("The date of an expired certificate is named, whatever its subject looks like")
    func longSubject() {
        let subject = "CN=" + String(repeating: "a", count: 1000)
        let text = TrustFailure.expired(.authority(subject), Date(timeIntervalSince1970: 1_900_000_000)).description
        #expect(text.hasSuffix("expired on 2030-03-17T17:46:40Z"))
        #expect(text.utf8.count < 200)
    }

    @Test("Only a certificate of another time leads people to their clock")
    func clock() {
        let date = Date(timeIntervalSince1970: 1_900_000_000)
        let ofTime: [TrustFailure] = [.expired(.server, date), .notYetValid(.authority("CN=a"), date)]
        for failure in ofTime { #expect(failure.suggestion?.contains("clock") == true) }
        let others: [TrustFailure] = [.otherHost, .noPinnedKey, .weakKey, .library("expired")]
        for failure in others { #expect(failure.suggestion == nil) }
    }
}

import AssentStore
import Testing

@testable import AssentCLI

@Suite("How far a copy is")
struct CopyDisplayTests {
    private func progress(_ rows: Int64, _ total: Int64, _ table: String = "audit") -> CopyProgress {
        CopyProgress(step: .copying, table: table, rows: rows, total: total)
    }

    @Test("A bar grows with the rows, also beyond what was counted at first, and fits on a terminal")
    func bar() {
        #expect(CopyDisplay.bar(progress(0, 200)) == "Copying   audit  [----------]   0 %  0 of 200")
        #expect(CopyDisplay.bar(progress(100, 200)) == "Copying   audit  [#####-----]  50 %  100 of 200")
        #expect(CopyDisplay.bar(progress(199, 200)) == "Copying   audit  [#########-]  99 %  199 of 200")
        #expect(CopyDisplay.bar(progress(300, 200)) == "Copying   audit  [##########] 100 %  300 of 200")
        #expect(CopyDisplay.bar(progress(0, 0)) == "Copying   audit  [##########] 100 %  0 of 0")
        #expect(CopyDisplay.bar(progress(99_999_999, 99_999_999, "revoked_access_tokens")).count <= 80)
    }

    @Test("Without a terminal there is a line for each table that is done")
    func line() {
        let done = CopyProgress(step: .comparing, table: "audit", rows: 200, total: 200, isDone: true)
        #expect(CopyDisplay.line(done) == "Comparing audit  200 rows")
        for (rows, text) in [(Int64(0), "0 rows"), (1, "1 row"), (2, "2 rows")] {
            let done = CopyProgress(step: .copying, table: "nodes", rows: rows, total: rows, isDone: true)
            #expect(CopyDisplay.line(done) == "Copying   nodes  \(text)")
        }
    }
}

import AssentCore
import AssentStore

extension SQLDatabase {
    /// By how many milliseconds a clock is ahead of the database server's; less than 0 when it is behind, and `nil` for
    /// a database without a clock of its own.
    ///
    /// - Throws: ``StoreError`` when the server cannot be asked.
    func lead(of clock: any WallClock) async throws -> Int64? {
        let before = clock.epochMilliseconds
        guard let served = try await time() else { return nil }
        let after = clock.epochMilliseconds
        // The server has looked at its clock at some moment in between.
        return before > served ? before - served : after < served ? after - served : 0
    }
}

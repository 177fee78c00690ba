#if PostgreSQL && os(Linux)
extension PostgreSQLExamination {
    /// What is found about the role that signs in.
    func roleFindings(_ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        let ask = PostgreSQLCommand("SELECT rolsuper AS super FROM pg_roles WHERE rolname = current_user")
        guard case .rows(let rows)? = try session.exchange([ask]).first, try rows.first?.bool("super") == true else {
            return []
        }
        return [
            DatabaseFinding(
                isProblem: false, isNote: true,
                "The role \(configuration.user) is a superuser: anyone who has its password has the whole database server. "
                    + "Make one that owns this database alone (CREATE ROLE … LOGIN).")
        ]
    }
}
#endif

#if PostgreSQL && os(Linux)
extension PostgreSQLExamination {
    /// What is found about the role that signs in, and about what any other role may do to its schema: a function there
    /// that fits a statement better than PostgreSQL's own runs in its place, with this role's rights.
    func roleFindings(_ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        let ask = PostgreSQLCommand(
            """
            SELECT rolsuper AS super, has_database_privilege('public', current_database(), 'CONNECT')
                AND coalesce(has_schema_privilege('public', current_schema(), 'CREATE'), false) AS shared
            FROM pg_roles WHERE rolname = current_user
            """)
        guard case .rows(let rows)? = try session.exchange([ask]).first, let row = rows.first else { return [] }
        var findings: [DatabaseFinding] = []
        func note(_ condition: Bool, _ text: String) {
            if condition { findings.append(DatabaseFinding(isProblem: false, isNote: true, text)) }
        }
        note(
            try row.bool("super"),
            "The role \(configuration.user) is a superuser: anyone who has its password has the whole database server. "
                + "Make one that owns this database alone (CREATE ROLE … LOGIN).")
        note(
            try row.bool("shared"),
            "Every role of the database server may put functions into the schema that Assent uses, and so read and "
                + "change all data. Keep others out: REVOKE CONNECT ON DATABASE \(configuration.database) FROM PUBLIC.")
        return findings
    }
}
#endif

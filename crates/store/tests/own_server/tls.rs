//! Connections by TLS: to whom they are made, and to whom they are not.

use raf_core::{ErrorKind, IRunStore, RunId, RunRecord, WriteOutcome};
use raf_store::{PostgresOptions, PostgresStore, PostgresTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio_postgres::NoTls;

use crate::server::{OwnServer, Programs};

/// A certificate and its key, in PEM.
struct Identity {
    certificate: String,
    key: String,
}

fn host_only() -> CertificateParams {
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

fn signed_by(authority: &CertifiedIssuer<'static, KeyPair>) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let certificate = host_only()
        .signed_by(&key, authority)
        .expect("a certificate");
    Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

fn signed_by_itself() -> Identity {
    let key = KeyPair::generate().expect("a key");
    let certificate = host_only().self_signed(&key).expect("a certificate");
    Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

/// A server that takes no connection over TCP but by TLS.
fn server(programs: &Programs, identity: &Identity) -> OwnServer {
    let files = [
        ("server.crt", identity.certificate.as_str()),
        ("server.key", identity.key.as_str()),
        (
            "pg_hba.conf",
            "hostssl all all 127.0.0.1/32 scram-sha-256\nhostssl all all ::1/128 scram-sha-256\n",
        ),
    ];
    OwnServer::start_with_password(programs, "sesame", &["ssl=on"], &files)
}

async fn open(url: &str, tls: Option<PostgresTls>) -> raf_core::Result<PostgresStore> {
    let mut options = PostgresOptions::new();
    if let Some(tls) = tls {
        options = options.with_tls(tls);
    }
    PostgresStore::open_with(url, options).await
}

fn trusting(pem: &str) -> PostgresTls {
    PostgresTls::with_roots(pem.as_bytes()).expect("a certificate")
}

/// `sslmode=require` and none said are alike: with TLS set there is no plain connection.
async fn works(server: &OwnServer, tls: &PostgresTls) {
    for sslmode in ["", "&sslmode=require", "&sslmode=prefer"] {
        let url = format!(
            "{}?application_name=by-tls{sslmode}",
            server.url_of("localhost")
        );
        let store = open(&url, Some(tls.clone())).await.expect("a connection");
        let run_id = RunId::random();
        let record = RunRecord::new(run_id.clone());
        let created = store.create(&record, None).await.expect("a write");
        assert_eq!(created, WriteOutcome::Written(1));
        assert!(
            IRunStore::load(&store, &run_id)
                .await
                .expect("a read")
                .is_some()
        );
    }
}

pub(crate) async fn trusted_authority(programs: Programs) {
    let authority = authority();
    let server = server(&programs, &signed_by(&authority));
    works(&server, &trusting(&authority.pem())).await;
    // Plain connections are not taken: what works above is encrypted.
    let plain = format!("{}?sslmode=disable", server.url_of("localhost"));
    assert!(tokio_postgres::connect(&plain, NoTls).await.is_err());
    let error = open(&plain, None).await.expect_err("no plain connection");
    assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
}

pub(crate) async fn self_signed(programs: Programs) {
    let identity = signed_by_itself();
    let server = server(&programs, &identity);
    works(&server, &trusting(&identity.certificate)).await;
}

pub(crate) async fn refused(programs: Programs) {
    let authority = authority();
    let server = server(&programs, &signed_by(&authority));
    let url = server.url_of("localhost");
    // Another authority, the system's authorities, and a certificate that is not made out to the address.
    let others = [
        (url.clone(), trusting(&crate::tls::authority().pem())),
        (
            url.clone(),
            PostgresTls::with_platform_roots().expect("the system's"),
        ),
        (server.url_of("127.0.0.1"), trusting(&authority.pem())),
    ];
    for (url, tls) in others {
        let error = open(&url, Some(tls)).await.expect_err("it is not trusted");
        assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
        assert_eq!(error.code(), Some("certificate"), "{error:?}");
        assert!(!error.is_temporary(), "{error:?}");
        assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
    }
    // A server without TLS gets no plain connection instead.
    let plain = OwnServer::start(&programs, &[], &[]);
    let error = open(&plain.url(), Some(trusting(&authority.pem()))).await;
    let error = error.expect_err("no TLS");
    assert_eq!(error.code(), Some("no_tls"), "{error:?}");
    assert!(!error.is_temporary(), "{error:?}");
    // What contradicts itself is said to do so, before anything is sent.
    let require = format!("{url}?sslmode=require");
    let disable = format!("{url}?sslmode=disable");
    for (url, tls) in [(require, None), (disable, Some(trusting(&authority.pem())))] {
        let error = open(&url, tls).await.expect_err("a contradiction");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let error = PostgresTls::with_roots(pem.as_bytes()).expect_err("no certificate");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
}

# as PostgreSQL's superuser, in the database that has the table: sudo -u postgres sh database.sh
psql -v ON_ERROR_STOP=1 shop <<'SQL'
alter system set wal_level = logical;  -- then restart PostgreSQL
create role connect login replication password 'secret';
-- Debezium makes a publication of the tables that it is given: for that it must own them
grant create on database shop to connect;
create table orders (id int primary key, note text);
alter table orders owner to connect;
insert into orders values (1, 'first');
create database warehouse owner connect;
SQL
